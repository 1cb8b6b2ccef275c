// SPDX-License-Identifier: Apache-2.0
#include "worker/device/host_lead.h"

#include <catch2/catch.hpp>

namespace mtmc::worker {
namespace {

TEST_CASE("HostLead drops a late sample and goes on as before", "[device]") {
  HostLead lead;

  CHECK_FALSE(lead.Note(false));
  CHECK(lead.Note(true));
  CHECK_FALSE(lead.Note(false));
  CHECK(lead.Note(true));

  CHECK(lead.passes() == 1);
}

TEST_CASE("HostLead gives the host more time when it is late twice in a row", "[device]") {
  HostLead lead;

  CHECK(lead.Note(true));
  CHECK(lead.Note(true));
  CHECK(lead.passes() == 2);
  CHECK(lead.Note(true));
  CHECK(lead.passes() == 2);
  CHECK(lead.Note(true));
  CHECK(lead.passes() == 3);
}

TEST_CASE("HostLead takes every sample of a host that is never in time", "[device]") {
  HostLead lead;
  int dropped = 0;
  for (int i = 0; i < 100; ++i) dropped += lead.Note(true) ? 1 : 0;

  CHECK(dropped == 10);
  CHECK(lead.passes() == HostLead::kMostPasses);
  CHECK_FALSE(lead.Note(true));
}

TEST_CASE("HostLead begins anew with another program", "[device]") {
  HostLead lead;
  for (int i = 0; i < 10; ++i) lead.Note(true);

  lead.Reset();

  CHECK(lead.passes() == 1);
  CHECK(lead.Note(true));
}

}  // namespace
}  // namespace mtmc::worker

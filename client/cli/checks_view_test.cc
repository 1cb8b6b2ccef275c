// SPDX-License-Identifier: Apache-2.0
#include "client/cli/checks_view.h"

#include <catch2/catch.hpp>
#include <sstream>

namespace mtmc::client {
namespace {

std::string Drawn(const v1::VerificationSummary& checks) {
  std::ostringstream out;
  PrintChecks(checks, out);
  return out.str();
}

TEST_CASE("A candidate that was not timed has nothing to tell of its checks", "[cli]") {
  CHECK(Drawn({}).empty());
}

TEST_CASE("Checks are told by how many executions they reach", "[cli]") {
  v1::VerificationSummary checks;
  checks.set_timed_executions(2040);
  checks.set_checked_executions(31);
  checks.set_fresh_executions(12);

  CHECK(Drawn(checks) == "  2040 executions timed, 31 of them checked, 12 on inputs never seen\n");
}

TEST_CASE("A program that is slower on inputs never seen is said to be", "[cli]") {
  v1::VerificationSummary checks;
  checks.set_timed_executions(1);
  checks.set_fresh_slowdown(1.2);

  CHECK_THAT(Drawn(checks), Catch::EndsWith("  it takes 1.20 times as long on inputs never seen, "
                                            "so its times were multiplied by that\n"));
}

}  // namespace
}  // namespace mtmc::client

// SPDX-License-Identifier: Apache-2.0
#include "common/base/shutdown_signal.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "absl/time/clock.h"

namespace mtmc::base {
namespace {

TEST_CASE("A termination signal requests a stop", "[base]") {
  const ShutdownSignal shutdown;
  REQUIRE_FALSE(shutdown.WaitUntil(absl::Now()));

  ::kill(::getpid(), SIGTERM);

  CHECK(shutdown.WaitUntil(absl::Now() + absl::Seconds(10)));
  CHECK(shutdown.token().stop_requested());
}

TEST_CASE("A stop can be requested without a signal", "[base]") {
  ShutdownSignal shutdown;

  shutdown.Request();
  shutdown.Request();

  pollfd entry{.fd = shutdown.fd(), .events = POLLIN, .revents = 0};
  CHECK(::poll(&entry, 1, 0) == 1);
  CHECK(shutdown.WaitUntil(absl::Now()));
}

}  // namespace
}  // namespace mtmc::base

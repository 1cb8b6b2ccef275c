// SPDX-License-Identifier: Apache-2.0
#include "common/base/executor.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/testing/status_matchers.h"

namespace mtmc::base {
namespace {

using testing::IsOk;
using testing::StatusIs;

TEST_CASE("Executor runs all queued tasks before it is destroyed", "[base]") {
  std::atomic<int> count = 0;
  {
    Executor executor({.name = "test", .num_threads = 2});
    for (int i = 0; i < 100; ++i) REQUIRE_THAT(executor.Submit([&count] { ++count; }), IsOk());
  }

  CHECK(count == 100);
}

TEST_CASE("Executor refuses a task when its queue is full", "[base]") {
  absl::Notification has_started;
  absl::Notification may_end;
  Executor executor({.name = "small", .num_threads = 1, .max_queued = 1});
  REQUIRE_THAT(executor.Submit([&] {
    has_started.Notify();
    may_end.WaitForNotification();
  }),
               IsOk());
  has_started.WaitForNotification();
  REQUIRE_THAT(executor.Submit([] {}), IsOk());

  CHECK_THAT(executor.Submit([] {}),
             StatusIs(absl::StatusCode::kResourceExhausted, "small has 1 queued tasks"));
  may_end.Notify();
}

TEST_CASE("A draining executor refuses new tasks", "[base]") {
  Executor executor({.name = "test"});

  CHECK(executor.Drain());

  CHECK_THAT(executor.Submit([] {}), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_CASE("Draining stops waiting at its deadline", "[base]") {
  absl::Notification may_end;
  Executor executor({.name = "test", .num_threads = 1});
  REQUIRE_THAT(executor.Submit([&] { may_end.WaitForNotification(); }), IsOk());

  CHECK_FALSE(executor.Drain(absl::Now()));
  may_end.Notify();
}

TEST_CASE("A drained executor has destroyed what its tasks owned", "[base]") {
  auto owned = std::make_shared<int>(1);
  Executor executor({.name = "test"});
  REQUIRE_THAT(executor.Submit([owned] {}), IsOk());

  CHECK(executor.Drain());

  CHECK(owned.use_count() == 1);
}

}  // namespace
}  // namespace mtmc::base

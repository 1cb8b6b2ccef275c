// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/prefetcher.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"

namespace mtmc::worker {
namespace {

const std::function<bool()> kNever = [] { return false; };

v1::Lease Lease(const std::string& id) {
  v1::Lease lease;
  lease.set_id(id);
  lease.mutable_evaluation();
  return lease;
}

}  // namespace

TEST_CASE("Prefetcher has a lease prepared when its turn comes", "[worker]") {
  absl::Notification begun;
  std::vector<std::string> prepared;
  Prefetcher prefetcher([&](const v1::Lease& lease, const auto&) {
    begun.Notify();
    prepared.push_back(lease.id());
  });

  const v1::Lease next = Lease("a");
  prefetcher.Adopt("", &next);
  CHECK(prefetcher.held() == "a");
  begun.WaitForNotification();
  prefetcher.Adopt("a", nullptr);
  prefetcher.Await("a", kNever);

  CHECK(prepared == std::vector<std::string>{"a"});
  CHECK(prefetcher.held().empty());
}

TEST_CASE("Prefetcher goes on preparing the lease in hand while it holds the next", "[worker]") {
  absl::Notification begun;
  absl::Notification may_end;
  absl::Notification second;
  bool was_cancelled = false;
  Prefetcher prefetcher([&](const v1::Lease& lease, const auto& is_cancelled) {
    if (lease.id() == "b") return second.Notify();
    begun.Notify();
    may_end.WaitForNotification();
    was_cancelled = is_cancelled();
  });
  const v1::Lease a = Lease("a");
  const v1::Lease b = Lease("b");
  prefetcher.Adopt("", &a);
  begun.WaitForNotification();

  prefetcher.Adopt("a", &b);
  may_end.Notify();
  prefetcher.Await("a", kNever);
  second.WaitForNotification();

  CHECK_FALSE(was_cancelled);
  CHECK(prefetcher.held() == "b");
}

TEST_CASE("Prefetcher calls off what is no longer wanted", "[worker]") {
  absl::Notification begun;
  absl::Notification ended;
  Prefetcher prefetcher([&](const v1::Lease&, const auto& is_cancelled) {
    begun.Notify();
    while (!is_cancelled()) std::this_thread::yield();
    ended.Notify();
  });
  const v1::Lease next = Lease("a");
  prefetcher.Adopt("c", &next);
  begun.WaitForNotification();

  prefetcher.Adopt("c", nullptr);

  ended.WaitForNotification();
  CHECK(prefetcher.held().empty());
}

TEST_CASE("Prefetcher does not wait for what it does not hold", "[worker]") {
  Prefetcher prefetcher([](const v1::Lease&, const auto&) {});
  prefetcher.Await("a", kNever);

  Prefetcher without({});
  CHECK_FALSE(without.can_prepare());
  const v1::Lease next = Lease("a");
  without.Adopt("", &next);
  without.Await("a", kNever);
  CHECK(without.held().empty());
}

TEST_CASE("Prefetcher ends while it prepares", "[worker]") {
  absl::Notification begun;
  Prefetcher prefetcher([&](const v1::Lease&, const auto& is_cancelled) {
    begun.Notify();
    while (!is_cancelled()) std::this_thread::yield();
  });

  const v1::Lease next = Lease("a");
  prefetcher.Adopt("", &next);
  begun.WaitForNotification();
}

}  // namespace mtmc::worker

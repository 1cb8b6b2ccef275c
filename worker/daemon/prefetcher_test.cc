// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/prefetcher.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace mtmc::worker {
namespace {

using Ids = std::vector<std::string>;

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
  Ids prepared;
  Prefetcher prefetcher({.prepare = [&](const v1::Lease& lease, const auto&) {
    begun.Notify();
    prepared.push_back(lease.id());
  }});

  const v1::Lease next = Lease("a");
  prefetcher.Adopt("", {next});
  CHECK(prefetcher.held() == Ids{"a"});
  begun.WaitForNotification();
  prefetcher.Adopt("a", {});
  prefetcher.Await("a", kNever);

  CHECK(prepared == Ids{"a"});
  CHECK(prefetcher.held().empty());
}

TEST_CASE("Prefetcher goes on preparing the lease in hand while it holds the next", "[worker]") {
  absl::Notification begun;
  absl::Notification may_end;
  absl::Notification second;
  bool was_cancelled = false;
  Prefetcher prefetcher({.prepare = [&](const v1::Lease& lease, const auto& is_cancelled) {
    if (lease.id() == "b") return second.Notify();
    begun.Notify();
    may_end.WaitForNotification();
    was_cancelled = is_cancelled();
  }});
  const v1::Lease a = Lease("a");
  const v1::Lease b = Lease("b");
  prefetcher.Adopt("", {a});
  begun.WaitForNotification();

  prefetcher.Adopt("a", {b});
  may_end.Notify();
  prefetcher.Await("a", kNever);
  second.WaitForNotification();

  CHECK_FALSE(was_cancelled);
  CHECK(prefetcher.held() == Ids{"b"});
}

TEST_CASE("Prefetcher calls off what is no longer wanted", "[worker]") {
  absl::Notification begun;
  absl::Notification ended;
  Prefetcher prefetcher({.prepare = [&](const v1::Lease&, const auto& is_cancelled) {
    begun.Notify();
    while (!is_cancelled()) std::this_thread::yield();
    ended.Notify();
  }});
  const v1::Lease next = Lease("a");
  prefetcher.Adopt("c", {next});
  begun.WaitForNotification();

  prefetcher.Adopt("c", {});

  ended.WaitForNotification();
  CHECK(prefetcher.held().empty());
}

TEST_CASE("Prefetcher prepares as many leases at a time as it takes, each once", "[worker]") {
  absl::Mutex mu;
  Ids begun;
  absl::Notification may_end;
  Prefetcher prefetcher({.prepare =
                             [&](const v1::Lease& lease, const auto&) {
                               {
                                 absl::MutexLock lock(&mu);
                                 begun.push_back(lease.id());
                               }
                               may_end.WaitForNotification();
                             },
                         .most = 3});

  prefetcher.Adopt("a", {Lease("b"), Lease("c"), Lease("d"), Lease("e")});
  CHECK(prefetcher.held() == Ids{"b", "c", "d"});
  {
    auto has_all = [&] { return begun.size() == 3; };
    absl::MutexLock lock(&mu);
    CHECK(mu.AwaitWithTimeout(absl::Condition(&has_all), absl::Seconds(10)));
  }
  prefetcher.Adopt("b", {Lease("c"), Lease("d")});
  may_end.Notify();
  for (const char* id : {"b", "c", "d"}) prefetcher.Await(id, kNever);

  std::sort(begun.begin(), begun.end());
  CHECK(begun == Ids{"b", "c", "d"});
  CHECK(prefetcher.held() == Ids{"c", "d"});
}

TEST_CASE("Prefetcher does not wait for what it does not hold", "[worker]") {
  Prefetcher prefetcher({.prepare = [](const v1::Lease&, const auto&) {}});
  prefetcher.Await("a", kNever);

  Prefetcher without({});
  CHECK(without.most() == 0);
  const v1::Lease next = Lease("a");
  without.Adopt("", {next});
  without.Await("a", kNever);
  CHECK(without.held().empty());
}

TEST_CASE("Prefetcher ends while it prepares", "[worker]") {
  absl::Notification begun;
  Prefetcher prefetcher({.prepare = [&](const v1::Lease&, const auto& is_cancelled) {
    begun.Notify();
    while (!is_cancelled()) std::this_thread::yield();
  }});

  const v1::Lease next = Lease("a");
  prefetcher.Adopt("", {next});
  begun.WaitForNotification();
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/lease_loop.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/rpc/error.h"
#include "common/testing/fake_clock.h"
#include "common/testing/status_matchers.h"

namespace mtmc::worker {
namespace {

using testing::IsOk;
using testing::StatusIs;

// A coordinator that hands out leases by name and writes down what it is told.
// Requests a stop when all results are in.
class FakeCoordinator : public CoordinatorClient {
 public:
  explicit FakeCoordinator(std::deque<std::string> leases) : leases_(std::move(leases)) {}

  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request,
                                                      absl::Duration) override {
    absl::MutexLock lock(&mu_);
    ++calls;
    reasons.insert(request.worker().quarantine_reason());
    if (failures_left > 0 && request.has_completed()) {
      --failures_left;
      if (stops_on_failure) stop.request_stop();
      return absl::UnavailableError("restarting");
    }
    if (request.has_completed() && request.completed().lease_id() == not_ours) {
      leases_.pop_front();
      not_ours.clear();
      return rpc::MakeError(absl::StatusCode::kPermissionDenied, "LEASE_NOT_YOURS", "another's");
    }
    if (is_version_refused) return absl::FailedPreconditionError("version");
    v1::SynchronizeResponse response;
    const absl::Time next = absl::Now() + absl::Milliseconds(20);
    response.mutable_next_synchronization_time()->set_seconds(absl::ToUnixSeconds(next));
    if (request.has_completed()) {
      results.push_back(request.completed().lease_id() + ":" +
                        request.completed().result().worker_failure().reason());
      if (!leases_.empty() && leases_.front() == request.completed().lease_id())
        leases_.pop_front();
    }
    if (request.has_executing() && request.executing().stage() == v1::STAGE_BUILD &&
        request.executing().lease_id() == called_off) {
      leases_.pop_front();
      called_off.clear();
    }
    if (!request.worker().quarantine_reason().empty()) {
      response.mutable_idle();
    } else if (leases_.empty()) {
      stop.request_stop();
    } else {
      response.mutable_lease()->set_id(leases_.front());
    }
    return response;
  }

  bool AwaitConnection(absl::Time) override {
    ++waits;
    return true;
  }

  bool HasHeard(const std::string& reason) {
    absl::MutexLock lock(&mu_);
    return reasons.contains(reason);
  }

  void Interrupt() override {}

  absl::StatusOr<std::string> Download(const v1::Digest&) override { return std::string(); }

  std::vector<std::string> results;
  // What the worker said of its device.
  std::set<std::string> reasons;
  std::string called_off;
  // Its result is refused, once.
  std::string not_ours;
  std::stop_source stop;
  int failures_left = 0;
  int calls = 0;
  int waits = 0;
  bool is_version_refused = false;
  bool stops_on_failure = false;

 private:
  absl::Mutex mu_;
  std::deque<std::string> leases_;
};

v1::LeaseResult Reason(std::string reason) {
  v1::LeaseResult result;
  result.mutable_worker_failure()->set_reason(std::move(reason));
  return result;
}

// Time passes as long as `may_pass` says so.
std::jthread LetTimePass(testing::FakeClock& clock, std::function<bool()> may_pass) {
  return std::jthread([&clock, may_pass = std::move(may_pass)](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (may_pass()) clock.Advance(absl::Seconds(1));
      std::this_thread::yield();
    }
  });
}

TEST_CASE("LeaseLoop works on each lease once and reports it", "[worker]") {
  FakeCoordinator coordinator({"a", "b"});
  base::RealClock clock;
  std::vector<std::string> worked;
  LeaseLoop loop(coordinator, clock, {}, [&](const v1::Lease& lease, const auto& progress) {
    progress(v1::STAGE_BUILD);
    worked.push_back(lease.id());
    return Reason("done");
  });

  const absl::Status status = loop.Run(coordinator.stop.get_token());

  CHECK_THAT(status, IsOk());
  CHECK(worked == std::vector<std::string>{"a", "b"});
  CHECK(coordinator.results == std::vector<std::string>{"a:done", "b:done"});
}

TEST_CASE("LeaseLoop repeats a result until it is acknowledged", "[worker]") {
  FakeCoordinator coordinator({"a"});
  coordinator.failures_left = 2;
  base::RealClock clock;
  int worked = 0;
  LeaseLoop loop(coordinator, clock, {}, [&](const v1::Lease&, const auto&) {
    ++worked;
    return Reason("done");
  });

  CHECK_THAT(loop.Run(coordinator.stop.get_token()), IsOk());

  CHECK(worked == 1);
  CHECK(coordinator.waits == 2);
  CHECK(coordinator.results == std::vector<std::string>{"a:done"});
}

TEST_CASE("LeaseLoop calls work off when the coordinator no longer wants it", "[worker]") {
  FakeCoordinator coordinator({"a", "b"});
  coordinator.called_off = "a";
  base::RealClock clock;
  LeaseLoop* self = nullptr;
  bool was_cancelled = false;
  absl::Mutex mu;
  absl::CondVar never;
  LeaseLoop loop(coordinator, clock, {}, [&](const v1::Lease& lease, const auto& progress) {
    progress(v1::STAGE_BUILD);
    if (lease.id() == "a") {
      absl::MutexLock lock(&mu);
      while (!self->is_cancelled()) never.WaitWithTimeout(&mu, absl::Milliseconds(1));
      was_cancelled = true;
    }
    return Reason("done");
  });
  self = &loop;

  CHECK_THAT(loop.Run(coordinator.stop.get_token()), IsOk());

  CHECK(was_cancelled);
  CHECK(coordinator.results == std::vector<std::string>{"b:done"});
}

TEST_CASE("LeaseLoop gives a lease up that the coordinator says is another's", "[worker]") {
  FakeCoordinator coordinator({"a", "b"});
  coordinator.not_ours = "a";
  base::RealClock clock;
  LeaseLoop loop(coordinator, clock, {},
                 [](const v1::Lease&, const auto&) { return Reason("done"); });

  CHECK_THAT(loop.Run(coordinator.stop.get_token()), IsOk());

  CHECK(coordinator.results == std::vector<std::string>{"b:done"});
}

TEST_CASE("LeaseLoop takes no lease in quarantine and recovers by itself", "[worker]") {
  FakeCoordinator coordinator({"a", "b"});
  testing::FakeClock clock;
  int checks = 0;
  LeaseLoop loop(
      coordinator, clock, {}, [](const v1::Lease&, const auto&) { return Reason("done"); },
      [&]() -> std::string { return ++checks <= 2 ? "the canary hangs" : ""; });
  // Not before the coordinator knows: the quarantine could be over by its next call.
  const std::jthread time =
      LetTimePass(clock, [&] { return coordinator.HasHeard("the canary hangs"); });
  const absl::Time start = clock.Now();

  CHECK_THAT(loop.Run(coordinator.stop.get_token()), IsOk());

  CHECK(coordinator.results == std::vector<std::string>{"a:done", "b:done"});
  CHECK(coordinator.reasons == std::set<std::string>{"", "the canary hangs"});
  // After each lease, and twice in quarantine.
  CHECK(checks == 4);
  CHECK(clock.Now() - start >= absl::Seconds(60));
}

// Full for as long as it says, once: calls within that time are counted.
class FullCoordinator : public CoordinatorClient {
 public:
  FullCoordinator(base::Clock& clock, absl::Duration asked) : clock_(clock), asked_(asked) {}

  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request,
                                                      absl::Duration) override {
    if (clock_.Now() < free_) ++too_early;
    v1::SynchronizeResponse response;
    if (request.has_completed()) {
      result_time = clock_.Now();
      stop.request_stop();
    }
    if (stop.stop_requested()) return response;
    response.mutable_lease()->set_id("a");
    if (!request.has_executing() || is_full) return response;
    is_full = true;
    free_ = clock_.Now() + asked_;
    return rpc::WithRetryDelay(
        rpc::MakeError(absl::StatusCode::kResourceExhausted, "OVERLOADED", "full"), asked_);
  }

  bool AwaitConnection(absl::Time) override { return true; }

  void Interrupt() override {}

  absl::StatusOr<std::string> Download(const v1::Digest&) override { return std::string(); }

  std::atomic<bool> is_full = false;
  int too_early = 0;
  absl::Time result_time;
  std::stop_source stop;

 private:
  base::Clock& clock_;
  const absl::Duration asked_;
  absl::Time free_ = absl::InfinitePast();
};

TEST_CASE("LeaseLoop does not call before the time that the coordinator asks for", "[worker]") {
  testing::FakeClock clock;
  FullCoordinator coordinator(clock, absl::Seconds(7));
  const absl::Time start = clock.Now();
  LeaseLoop loop(coordinator, clock, {}, [&](const v1::Lease&, const auto& progress) {
    progress(v1::STAGE_BUILD);
    while (!coordinator.is_full) std::this_thread::yield();
    // News that would end any other wait.
    progress(v1::STAGE_VERIFY);
    return Reason("done");
  });
  const std::jthread time = LetTimePass(clock, [] { return true; });

  CHECK_THAT(loop.Run(coordinator.stop.get_token()), IsOk());

  CHECK(coordinator.too_early == 0);
  CHECK(coordinator.result_time - start >= absl::Seconds(7));
}

TEST_CASE("LeaseLoop leaves without a result that the coordinator never takes", "[worker]") {
  FakeCoordinator coordinator({"a"});
  coordinator.failures_left = std::numeric_limits<int>::max();
  coordinator.stops_on_failure = true;
  testing::FakeClock clock;
  LeaseLoop loop(coordinator, clock, {}, [](const v1::Lease&, const auto&) { return Reason(""); });
  const std::jthread time = LetTimePass(clock, [] { return true; });
  const absl::Time start = clock.Now();

  CHECK_THAT(loop.Run(coordinator.stop.get_token()), IsOk());

  CHECK(coordinator.results.empty());
  CHECK(clock.Now() - start >= absl::Seconds(15));
}

// Wants "a" done, and the worker to stop once that works on it.
class PreemptingCoordinator : public CoordinatorClient {
 public:
  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request,
                                                      absl::Duration) override {
    if (request.has_executing() && request.executing().stage() == v1::STAGE_BUILD) {
      stop.request_stop();
    }
    if (request.is_leaving() && request.has_executing()) ++calls_while_leaving;
    v1::SynchronizeResponse response;
    if (request.has_completed()) {
      results.push_back(request.completed().result().worker_failure().reason());
      return response;
    }
    if (request.has_idle() && request.is_leaving()) {
      ++farewells;
      if (outages-- > 0) return absl::UnavailableError("restarting");
      response.mutable_idle();
      return response;
    }
    response.mutable_lease()->set_id("a");
    return response;
  }

  bool AwaitConnection(absl::Time) override { return true; }

  void Interrupt() override {}

  absl::StatusOr<std::string> Download(const v1::Digest&) override { return std::string(); }

  std::stop_source stop;
  std::vector<std::string> results;
  // Of the last calls, how many fail.
  int outages = 0;
  int farewells = 0;
  std::atomic<int> calls_while_leaving = 0;
};

// Work that takes for ever, unless it is called off; whether it was.
bool WorkUntilCalledOff(const LeaseLoop& loop, const std::function<void(v1::Stage)>& progress) {
  progress(v1::STAGE_BUILD);
  while (!loop.is_cancelled()) std::this_thread::yield();
  return true;
}

TEST_CASE("LeaseLoop gives back a lease that takes longer than its grace", "[worker]") {
  PreemptingCoordinator coordinator;
  testing::FakeClock clock;
  std::atomic<bool> was_called_off = false;
  int checks = 0;
  absl::Duration taken;
  {
    LeaseLoop* self = nullptr;
    LeaseLoop loop(
        coordinator, clock, {},
        [&](const v1::Lease&, const auto& progress) {
          was_called_off = WorkUntilCalledOff(*self, progress);
          return Reason("late");
        },
        [&] {
          ++checks;
          return std::string();
        });
    self = &loop;
    const std::jthread time = LetTimePass(clock, [] { return true; });
    const absl::Time start = clock.Now();

    CHECK_THAT(loop.Run(coordinator.stop.get_token(), absl::Seconds(30)), IsOk());

    taken = clock.Now() - start;
  }

  CHECK(was_called_off);
  CHECK(checks == 0);
  CHECK(coordinator.results.empty());
  CHECK(coordinator.farewells == 1);
  CHECK(taken >= absl::Seconds(30));
  // One that leaves calls no more often than one that works.
  CHECK(coordinator.calls_while_leaving > 0);
  CHECK(coordinator.calls_while_leaving <= absl::ToInt64Seconds(taken) + 1);
}

TEST_CASE("LeaseLoop gives a lease back once the coordinator answers", "[worker]") {
  PreemptingCoordinator coordinator;
  coordinator.outages = 2;
  base::RealClock clock;
  LeaseLoop* self = nullptr;
  LeaseLoop loop(coordinator, clock, {}, [&](const v1::Lease&, const auto& progress) {
    WorkUntilCalledOff(*self, progress);
    return Reason("late");
  });
  self = &loop;

  CHECK_THAT(loop.Run(coordinator.stop.get_token(), absl::ZeroDuration()), IsOk());

  CHECK(coordinator.farewells == 3);
}

TEST_CASE("LeaseLoop gives a lease back to nobody when nobody answers", "[worker]") {
  PreemptingCoordinator coordinator;
  coordinator.outages = std::numeric_limits<int>::max();
  testing::FakeClock clock;
  LeaseLoop* self = nullptr;
  LeaseLoop loop(coordinator, clock, {}, [&](const v1::Lease&, const auto& progress) {
    WorkUntilCalledOff(*self, progress);
    return Reason("late");
  });
  self = &loop;
  const std::jthread time = LetTimePass(clock, [] { return true; });
  const absl::Time start = clock.Now();

  CHECK_THAT(loop.Run(coordinator.stop.get_token(), absl::ZeroDuration()), IsOk());

  CHECK(clock.Now() - start >= absl::Seconds(15));
}

TEST_CASE("LeaseLoop reports a lease that is done within its grace", "[worker]") {
  PreemptingCoordinator coordinator;
  testing::FakeClock clock;
  LeaseLoop loop(coordinator, clock, {}, [&](const v1::Lease&, const auto& progress) {
    progress(v1::STAGE_BUILD);
    while (coordinator.calls_while_leaving < 3) std::this_thread::yield();
    return Reason("done");
  });
  const std::jthread time = LetTimePass(clock, [] { return true; });

  CHECK_THAT(loop.Run(coordinator.stop.get_token(), absl::Hours(10'000)), IsOk());

  CHECK(coordinator.results == std::vector<std::string>{"done"});
}

TEST_CASE("LeaseLoop ends when its version is refused", "[worker]") {
  FakeCoordinator coordinator({});
  coordinator.is_version_refused = true;
  base::RealClock clock;
  LeaseLoop loop(coordinator, clock, {}, [](const v1::Lease&, const auto&) { return Reason(""); });

  CHECK_THAT(loop.Run(coordinator.stop.get_token()),
             StatusIs(absl::StatusCode::kFailedPrecondition));
}

// Grants "b" ahead while "a" is worked on, and stops the loop after both.
class AheadCoordinator : public CoordinatorClient {
 public:
  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request,
                                                      absl::Duration) override {
    absl::MutexLock lock(&mu);
    CHECK(request.most_prefetched() == 3);
    held.insert(request.prefetched_lease_ids().begin(), request.prefetched_lease_ids().end());
    v1::SynchronizeResponse response;
    const absl::Time next = absl::Now() + absl::Milliseconds(20);
    response.mutable_next_synchronization_time()->set_seconds(absl::ToUnixSeconds(next));
    if (request.has_completed()) completed.push_back(request.completed().lease_id());
    if (completed.size() < 2) response.mutable_lease()->set_id(completed.empty() ? "a" : "b");
    if (completed.empty()) {
      v1::Lease& ahead = *response.add_prefetches();
      ahead.set_id("b");
      ahead.mutable_evaluation();
    }
    if (completed.size() == 2) stop.request_stop();
    return response;
  }

  bool AwaitConnection(absl::Time) override { return true; }

  void Interrupt() override {}

  absl::StatusOr<std::string> Download(const v1::Digest&) override { return std::string(); }

  absl::Mutex mu;
  std::set<std::string> held;
  std::vector<std::string> completed;
  std::stop_source stop;
};

TEST_CASE("LeaseLoop prepares the next lease while it works on the present one", "[worker]") {
  AheadCoordinator coordinator;
  base::RealClock clock;
  absl::Notification prepared;
  std::vector<std::string> order;
  LeaseLoop loop(
      coordinator, clock, {},
      [&](const v1::Lease& lease, const auto&) {
        if (lease.id() == "a") prepared.WaitForNotification();
        order.push_back(lease.id());
        return Reason("done");
      },
      [] { return std::string(); },
      {.prepare =
           [&](const v1::Lease& lease, const auto&) {
             if (lease.id() == "b") prepared.Notify();
           },
       .most = 3});

  CHECK_THAT(loop.Run(coordinator.stop.get_token()), IsOk());

  CHECK(order == std::vector<std::string>{"a", "b"});
  CHECK(coordinator.completed == order);
  CHECK(coordinator.held.contains("b"));
}

// Its clock is an hour off. Ends the work once it has heard of it some times.
class SkewedCoordinator : public CoordinatorClient {
 public:
  explicit SkewedCoordinator(absl::Duration skew) : skew_(skew) {}

  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request,
                                                      absl::Duration) override {
    v1::SynchronizeResponse response;
    const absl::Time next = absl::Now() + skew_ + absl::Milliseconds(20);
    response.mutable_next_synchronization_time()->set_seconds(absl::ToUnixSeconds(next));
    if (request.has_completed()) {
      stop.request_stop();
    } else {
      response.mutable_lease()->set_id("a");
    }
    if (request.has_executing() && ++calls == 3) heard.Notify();
    return response;
  }

  bool AwaitConnection(absl::Time) override { return true; }

  void Interrupt() override {}

  absl::StatusOr<std::string> Download(const v1::Digest&) override { return std::string(); }

  int calls = 0;
  absl::Notification heard;
  std::stop_source stop;

 private:
  const absl::Duration skew_;
};

TEST_CASE("LeaseLoop tells that it works whatever the coordinator's clock says", "[worker]") {
  SkewedCoordinator coordinator(GENERATE(absl::Hours(1), -absl::Hours(1)));
  base::RealClock clock;
  LeaseLoop loop(coordinator, clock, {}, [&](const v1::Lease&, const auto&) {
    coordinator.heard.WaitForNotification();
    return Reason("done");
  });

  CHECK_THAT(loop.Run(coordinator.stop.get_token()), IsOk());
}

// A coordinator with nothing to do after one lease, until it is told to stop.
class IdleCoordinator : public CoordinatorClient {
 public:
  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request,
                                                      absl::Duration) override {
    v1::SynchronizeResponse response;
    is_done = is_done || request.has_completed();
    if (is_done) {
      response.mutable_idle();
    } else {
      response.mutable_lease()->set_id("a");
    }
    return response;
  }

  bool AwaitConnection(absl::Time) override { return true; }

  void Interrupt() override {}

  absl::StatusOr<std::string> Download(const v1::Digest&) override { return std::string(); }

  std::atomic<bool> is_done = false;
};

TEST_CASE("LeaseLoop rests once when no work comes for a while", "[worker]") {
  IdleCoordinator coordinator;
  testing::FakeClock clock;
  std::stop_source stop;
  std::atomic<int> rests = 0, prepared = 0;
  absl::Duration waited;
  absl::Time worked;
  LeaseLoop loop(
      coordinator, clock, {},
      [&](const v1::Lease&, const auto&) {
        worked = clock.Now();
        return Reason("done");
      },
      [] { return std::string(); }, {},
      {.prepare = [&] { ++prepared; },
       .begin =
           [&] {
             if (rests++ == 0) waited = clock.Now() - worked;
             CHECK(prepared == rests);
           }});
  {
    const std::jthread time = LetTimePass(clock, [&] { return coordinator.is_done.load(); });
    const std::jthread ends([&] {
      // Long after the first rest, where a second one would have come.
      while (rests == 0) std::this_thread::yield();
      const absl::Time end = clock.Now() + 5 * LeaseLoop::kRestAfter;
      while (clock.Now() < end) std::this_thread::yield();
      stop.request_stop();
    });
    CHECK_THAT(loop.Run(stop.get_token()), IsOk());
  }

  CHECK(rests == 1);
  CHECK(prepared == 1);
  CHECK(waited >= LeaseLoop::kRestAfter);
}

TEST_CASE("LeaseLoop does not rest before it has worked", "[worker]") {
  IdleCoordinator coordinator;
  coordinator.is_done = true;
  testing::FakeClock clock;
  std::stop_source stop;
  std::atomic<int> rests = 0;
  LeaseLoop loop(
      coordinator, clock, {}, [](const v1::Lease&, const auto&) { return Reason("done"); },
      [] { return std::string(); }, {}, {.prepare = [&] { ++rests; }, .begin = [&] { ++rests; }});
  {
    const absl::Time end = clock.Now() + 5 * LeaseLoop::kRestAfter;
    const std::jthread time = LetTimePass(clock, [] { return true; });
    const std::jthread ends([&] {
      while (clock.Now() < end) std::this_thread::yield();
      stop.request_stop();
    });
    CHECK_THAT(loop.Run(stop.get_token()), IsOk());
  }

  CHECK(rests == 0);
}

}  // namespace
}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "mtmc/v1/worker.pb.h"
#include "worker/daemon/coordinator_client.h"
#include "worker/daemon/prefetcher.h"

namespace mtmc::worker {

// What a worker without work does, on the work thread; a lease that comes meanwhile waits.
struct Rest {
  // Starts what `begin` needs: once no lease has come for kPrepareRestAfter after one.
  std::function<void()> prepare = [] {};
  // Gives back what is kept for more work: after kRestAfter.
  std::function<void()> begin = [] {};
};

// Takes leases and works on them, one at a time.
//
//   Run (caller's thread)          work thread
//   ---------------------          -----------
//   Synchronize(idle)      ---->   (waits)
//   lease arrives          ---->   work(lease, progress)
//   Synchronize(executing) every stage, and before the lease would expire
//                          <----   result
//   Synchronize(completed) until it is acknowledged
//
// A worker that is to stop finishes the lease in hand. If that takes longer than its grace,
// the work is called off, and the lease given back (it leaves, and says that it is idle):
// another worker gets it at once, and nobody has lost anything.
//
// Meanwhile the leases that are to follow are prepared on other threads.
//
// A response that names no lease, or another one, calls the present work off.
// A completed result is repeated until a call succeeds, over any outage; only a
// worker that is to stop gives up after 15 s, and its work is done again. So it is with a
// lease that is given back. A coordinator
// that asks for a pause (RetryRule) is not called before it is over, whatever happens meanwhile.
class LeaseLoop {
 public:
  // Runs one lease; blocks. Calls `progress` at each stage. Must return soon
  // after is_cancelled() has become true; its result is dropped then.
  using Work = std::function<v1::LeaseResult(const v1::Lease& lease,
                                             const std::function<void(v1::Stage)>& progress)>;

  // Why the device must not be worked on; empty when it may. Called on the work
  // thread after every lease, and every 30 s while it says something: the worker
  // is quarantined meanwhile and takes no lease.
  using CheckHealth = std::function<std::string()>;

  static constexpr absl::Duration kPrepareRestAfter = absl::Seconds(2);

  // Longer than a search thinks between two candidates, as a rule, and short enough for a
  // user who wants the device for something else.
  static constexpr absl::Duration kRestAfter = absl::Seconds(7);

  // Borrows client and clock, which must outlive it. Where `prefetch` prepares nothing, no
  // lease is asked for ahead.
  LeaseLoop(
      CoordinatorClient& client, base::Clock& clock, v1::Worker worker, Work work,
      CheckHealth check_health = [] { return std::string(); }, Prefetcher::Options prefetch = {},
      Rest rest = {});
  ~LeaseLoop();

  // How long Run takes at most after a stop and its grace: for offers of what it has, while the
  // coordinator does not answer.
  static constexpr absl::Duration kFarewell = absl::Seconds(28);

  // Until `stop` is requested and the lease in hand is done, and reported if the
  // coordinator takes it, or is given back `grace` later. Work that was called off may go on
  // until the destructor has ended.
  // FAILED_PRECONDITION when the coordinator refuses this worker's version.
  absl::Status Run(const std::stop_token& stop, absl::Duration grace = absl::InfiniteDuration());

  // Whether the work in hand was called off. Thread-safe; for the parties.
  bool is_cancelled() const { return is_cancelled_.load(); }

 private:
  struct Current {
    v1::Lease lease;
    v1::Stage stage = v1::STAGE_UNSPECIFIED;
    std::optional<v1::LeaseResult> result;
  };

  struct Outage;

  void WorkUntilStopped(const std::stop_token& stop);
  void AwaitLease(const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Quarantine(std::string reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::SynchronizeRequest Describe(bool is_leaving);
  void Adopt(const v1::SynchronizeRequest& sent, const v1::SynchronizeResponse& response);
  // The coordinator says that the lease in hand is another's.
  void CallOff(const absl::Status& reason);
  void GiveBack();
  bool IsIdle();
  void AwaitChange(absl::Time deadline, const std::stop_token& stop);
  // Whether a worker that leaves offers what it has no more.
  bool IsHopeless(const absl::Status& status, Outage& outage);
  // Waits as `status`, of a call that failed, says, and tells of a failure of a new kind.
  void AwaitRetry(const absl::Status& status, const std::stop_token& stop, Outage& outage);
  void AwaitRetry(absl::Time time);

  CoordinatorClient& client_;
  base::Clock& clock_;
  const v1::Worker worker_;
  const Work work_;
  const CheckHealth check_health_;
  const Rest rest_;
  const std::string instance_id_;
  std::atomic<bool> is_cancelled_ = false;
  // The worker leaves without the result of its work.
  std::atomic<bool> has_given_back_ = false;

  absl::Mutex mu_;
  absl::CondVar changed_;
  // The lease in hand, done or not.
  std::optional<Current> current_ ABSL_GUARDED_BY(mu_);
  // The work thread is inside work_.
  bool is_working_ ABSL_GUARDED_BY(mu_) = false;
  // A lease was worked on since the last rest.
  bool has_worked_ ABSL_GUARDED_BY(mu_) = false;
  // What check_health_ said last.
  std::string quarantine_reason_ ABSL_GUARDED_BY(mu_);
  // Something happened that the coordinator should hear of at once.
  bool has_news_ ABSL_GUARDED_BY(mu_) = false;

  Prefetcher prefetcher_;
  std::jthread worker_thread_;
};

}  // namespace mtmc::worker

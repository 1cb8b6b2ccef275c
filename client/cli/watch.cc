// SPDX-License-Identifier: Apache-2.0
#include "client/cli/watch.h"

#include <atomic>
#include <stop_token>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/cli/interrupt.h"
#include "common/rpc/error.h"
#include "common/rpc/retry_rule.h"

namespace mtmc::client {
namespace {

// Between attempts to take a broken stream up again, unless the coordinator asks for more.
constexpr absl::Duration kFirstPause = absl::Milliseconds(300);
constexpr absl::Duration kLastPause = absl::Seconds(2);
// A coordinator that is gone this long will not come back by itself.
constexpr absl::Duration kGiveUpAfter = absl::Seconds(60);
// Cadence of the live line and of supervision.
constexpr absl::Duration kTick = absl::Milliseconds(250);

}  // namespace

absl::Status FollowJob(Session& session, const std::string& job, JobView& view,
                       absl::Duration timeout) {
  absl::Mutex mu;
  absl::CondVar ended;
  bool is_done = false;
  bool is_late = false;
  const absl::Time deadline = absl::Now() + timeout;
  // Draws, supervises, and ends the stream on Ctrl-C or time-out.
  std::jthread ticker([&](std::stop_token stop) {
    absl::MutexLock lock(&mu);
    for (int tick = 0; !stop.stop_requested() && !is_done; ++tick) {
      ended.WaitWithTimeout(&mu, kTick);
      view.Tick();
      if (tick % 4 == 0 && session.stack) session.stack->Supervise();
      if (absl::Now() >= deadline) is_late = true;
      if (is_late || Interrupted()) session.api->StopWatching();
    }
  });
  absl::Status status;
  rpc::RetryRule retry({.first_pause = kFirstPause, .max_pause = kLastPause});
  absl::Time last_heard = absl::Now();
  while (!Interrupted()) {
    status = session.api->WatchJob(job, view.cursor(), [&](const v1::JobEvent& event) {
      absl::MutexLock lock(&mu);
      view.Observe(event);
      last_heard = absl::Now();
      retry.Reset();
      return !view.has_ended();
    });
    absl::MutexLock lock(&mu);
    if (view.has_ended() || is_late) break;
    if (rpc::ErrorReason(status) == "CURSOR_EXPIRED" && view.cursor() > 0) {
      view.StartOver();
      continue;
    }
    // A full service closes the stream before it begins.
    const bool may_come_back =
        absl::IsUnavailable(status) || absl::IsResourceExhausted(status) || status.ok();
    if (!may_come_back || absl::Now() - last_heard > kGiveUpAfter) break;
    const absl::Time next = absl::Now() + retry.PauseAfter(status);
    while (absl::Now() < next && !Interrupted() && !is_late) ended.WaitWithTimeout(&mu, kTick);
  }
  {
    absl::MutexLock lock(&mu);
    is_done = true;
    ended.SignalAll();
  }
  ticker.join();
  if (view.has_ended()) return absl::OkStatus();
  if (Interrupted()) return absl::CancelledError("detached");
  if (is_late) return absl::DeadlineExceededError("the job has not ended in time; it goes on");
  return status.ok() ? absl::UnavailableError("the coordinator ended the stream") : status;
}

}  // namespace mtmc::client

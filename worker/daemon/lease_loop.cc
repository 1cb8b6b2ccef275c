// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/lease_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/rpc/error.h"
#include "common/rpc/retry_rule.h"

namespace mtmc::worker {
namespace {

// The coordinator holds an idle call for some seconds; this is well above.
constexpr absl::Duration kCallTimeout = absl::Seconds(30);

// Waits between calls that the coordinator answers with an error grow to the second
// value; one that cannot be reached is called once it can, with the first one in between.
constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
constexpr absl::Duration kLastRetry = absl::Seconds(3);

// The coordinator holds an idle call until there is work; the pause only keeps
// one that does not from being called in a busy loop.
constexpr absl::Duration kIdlePause = absl::Milliseconds(10);

// How long a worker that leaves offers what it has, a result or its lease, to a coordinator that
// does not take it; in calls that one which hangs does not keep long. With a call under way
// before, a wait for the connection and a last call they make kFarewell.
constexpr absl::Duration kLeaveGrace = absl::Seconds(15);
constexpr absl::Duration kLeaveCallTimeout = absl::Seconds(5);

// It does not hold the call of a worker that takes no work.
constexpr absl::Duration kSickPause = absl::Milliseconds(500);

// Between two looks at a device that does not work.
constexpr absl::Duration kCheckInterval = absl::Seconds(30);

// Between two calls of a worker that works. The coordinator says when the next one is due, by a
// clock that may differ by an hour: much later its lease would be given away, and with no time
// between them calls would keep both busy.
constexpr absl::Duration kLeastPause = absl::Milliseconds(100);
constexpr absl::Duration kMostPause = absl::Seconds(1);

absl::Time ToTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

// What is told once while it lasts: messages of one error may differ at each call.
std::string Kind(const absl::Status& error) {
  return absl::StrCat(absl::StatusCodeToString(error.code()), " ", rpc::ErrorReason(error));
}

// When to call again at `now`.
absl::Time NextCall(const v1::SynchronizeResponse& response, absl::Time now) {
  const absl::Time due = ToTime(response.next_synchronization_time());
  return std::clamp(due, now + kLeastPause, now + kMostPause);
}

}  // namespace

LeaseLoop::LeaseLoop(CoordinatorClient& client, base::Clock& clock, v1::Worker worker, Work work,
                     CheckHealth check_health, Prefetcher::Options prefetch, Rest rest)
    : client_(client),
      clock_(clock),
      worker_(std::move(worker)),
      work_(std::move(work)),
      check_health_(std::move(check_health)),
      rest_(std::move(rest)),
      instance_id_(base::MakeUuid4()),
      prefetcher_(std::move(prefetch)),
      worker_thread_([this](const std::stop_token& stop) { WorkUntilStopped(stop); }) {}

LeaseLoop::~LeaseLoop() {
  absl::MutexLock lock(&mu_);
  worker_thread_.request_stop();
  is_cancelled_ = true;
  changed_.SignalAll();
}

void LeaseLoop::WorkUntilStopped(const std::stop_token& stop) {
  while (true) {
    v1::Lease lease;
    {
      absl::MutexLock lock(&mu_);
      AwaitLease(stop);
      if (stop.stop_requested()) return;
      lease = current_->lease;
      is_working_ = true;
      is_cancelled_ = false;
    }
    prefetcher_.Await(lease.id(), [this] { return is_cancelled_.load(); });
    v1::LeaseResult result = work_(lease, [&](v1::Stage stage) {
      absl::MutexLock lock(&mu_);
      if (current_ && current_->lease.id() == lease.id()) current_->stage = stage;
      has_news_ = true;
      changed_.SignalAll();
    });
    // Of a worker that is gone nobody asks how its device is, and a canary takes its time.
    std::string reason = has_given_back_.load() ? "" : check_health_();
    absl::MutexLock lock(&mu_);
    is_working_ = false;
    has_worked_ = true;
    has_news_ = true;
    Quarantine(std::move(reason));
    if (current_ && current_->lease.id() == lease.id()) current_->result = std::move(result);
    changed_.SignalAll();
  }
}

// Until there is work to begin. In quarantine the health is looked at meanwhile.
void LeaseLoop::AwaitLease(const std::stop_token& stop) {
  const absl::Time begin = clock_.Now();
  bool is_rest_prepared = false;
  absl::Time next_check = clock_.Now() + kCheckInterval;
  while (!stop.stop_requested() && (!current_ || current_->result)) {
    const absl::Time check_due = quarantine_reason_.empty() ? absl::InfiniteFuture() : next_check;
    const absl::Duration pause = is_rest_prepared ? kRestAfter : kPrepareRestAfter;
    const absl::Time rest_due = has_worked_ ? begin + pause : absl::InfiniteFuture();
    const absl::Time now = clock_.Now();
    if (now >= check_due) {
      mu_.Unlock();
      std::string reason = check_health_();
      mu_.Lock();
      Quarantine(std::move(reason));
      next_check = clock_.Now() + kCheckInterval;
    } else if (now >= rest_due) {
      const auto& next = is_rest_prepared ? rest_.begin : rest_.prepare;
      if (is_rest_prepared) has_worked_ = false;
      is_rest_prepared = true;
      mu_.Unlock();
      next();
      mu_.Lock();
    } else if (std::min(check_due, rest_due) == absl::InfiniteFuture()) {
      changed_.Wait(&mu_);
    } else {
      clock_.Wait(changed_, mu_, std::min(check_due, rest_due));
    }
  }
}

void LeaseLoop::Quarantine(std::string reason) {
  if (reason == quarantine_reason_) return;
  if (reason.empty()) {
    base::Log(base::LogLevel::kInfo, "the device works again");
  } else {
    base::Log(base::LogLevel::kError, "the device is quarantined", {{"reason", reason}});
  }
  quarantine_reason_ = std::move(reason);
  has_news_ = true;
  changed_.SignalAll();
}

v1::SynchronizeRequest LeaseLoop::Describe(bool is_leaving) {
  v1::SynchronizeRequest request;
  *request.mutable_worker() = worker_;
  request.set_instance_id(instance_id_);
  request.set_is_leaving(is_leaving);
  request.set_most_prefetched(prefetcher_.most());
  for (std::string& id : prefetcher_.held()) request.add_prefetched_lease_ids(std::move(id));
  absl::MutexLock lock(&mu_);
  has_news_ = false;
  request.mutable_worker()->set_quarantine_reason(quarantine_reason_);
  if (!current_) {
    request.mutable_idle();
  } else if (current_->result) {
    request.mutable_completed()->set_lease_id(current_->lease.id());
    *request.mutable_completed()->mutable_result() = *current_->result;
  } else {
    request.mutable_executing()->set_lease_id(current_->lease.id());
    request.mutable_executing()->set_stage(current_->stage);
  }
  return request;
}

void LeaseLoop::Adopt(const v1::SynchronizeRequest& sent, const v1::SynchronizeResponse& response) {
  absl::MutexLock lock(&mu_);
  // Any answer acknowledges a result that was sent.
  if (sent.has_completed() && current_ && current_->lease.id() == sent.completed().lease_id()) {
    current_.reset();
  }
  const std::string wanted = response.has_lease() ? response.lease().id() : "";
  if (current_ && current_->lease.id() != wanted) {
    base::Log(base::LogLevel::kInfo, "lease called off", {{"lease", current_->lease.id()}});
    is_cancelled_ = true;
    current_.reset();
  }
  // A called-off lease must have left the work thread before the next begins.
  while (is_working_ && !current_) changed_.Wait(&mu_);
  if (!wanted.empty() && !current_) {
    base::Log(base::LogLevel::kDebug, "lease taken",
              {{"lease", wanted},
               {"job", response.lease().job()},
               {"candidate", response.lease().candidate()}});
    current_ = Current{.lease = response.lease()};
    changed_.SignalAll();
  }
}

void LeaseLoop::AwaitChange(absl::Time deadline, const std::stop_token& stop) {
  absl::MutexLock lock(&mu_);
  while (!has_news_ && !stop.stop_requested() && clock_.Now() < deadline) {
    clock_.Wait(changed_, mu_, deadline);
  }
}

void LeaseLoop::AwaitRetry(absl::Time time) {
  absl::MutexLock lock(&mu_);
  while (clock_.Now() < time) clock_.Wait(changed_, mu_, time);
}

void LeaseLoop::CallOff(const absl::Status& reason) {
  absl::MutexLock lock(&mu_);
  if (!current_) return;
  base::Log(base::LogLevel::kWarning, "lease given up",
            {{"lease", current_->lease.id()}, {"error", reason}});
  is_cancelled_ = true;
  current_.reset();
  while (is_working_) changed_.Wait(&mu_);
}

// Calls the work in hand off, which takes too long. What is done is reported.
void LeaseLoop::GiveBack() {
  absl::MutexLock lock(&mu_);
  if (!current_ || current_->result) return;
  base::Log(base::LogLevel::kWarning, "no time left for the lease, it is given back",
            {{"lease", current_->lease.id()}, {"stage", v1::Stage_Name(current_->stage)}});
  is_cancelled_ = true;
  has_given_back_ = true;
  current_.reset();
}

bool LeaseLoop::IsIdle() {
  absl::MutexLock lock(&mu_);
  return !current_;
}

// Calls that fail one after another.
struct LeaseLoop::Outage {
  rpc::RetryRule retry{{.first_pause = kFirstRetry, .max_pause = kLastRetry}};
  // Kind of the last failure; empty while calls succeed.
  std::string kind;
  // When a worker that leaves offers what it has for the last time.
  absl::Time last_offer = absl::InfiniteFuture();
};

absl::Status LeaseLoop::Run(const std::stop_token& stop, absl::Duration grace) {
  const std::stop_callback wake(stop, [this] {
    client_.Interrupt();
    absl::MutexLock lock(&mu_);
    changed_.SignalAll();
  });
  Outage outage;
  absl::Time grace_end = absl::InfiniteFuture();
  while (true) {
    const bool is_leaving = stop.stop_requested();
    if (is_leaving) grace_end = std::min(grace_end, clock_.Now() + grace);
    if (clock_.Now() >= grace_end) GiveBack();
    const bool gives_back = has_given_back_.load();
    const v1::SynchronizeRequest request = Describe(is_leaving);
    const auto response =
        client_.Synchronize(request, is_leaving ? kLeaveCallTimeout : kCallTimeout);
    if (!response.ok()) {
      if (absl::IsFailedPrecondition(response.status())) return response.status();
      if (rpc::ErrorReason(response.status()) == "LEASE_NOT_YOURS") CallOff(response.status());
      const bool has_something = request.has_completed() || gives_back;
      const bool is_bare = request.has_idle() && !gives_back;
      if (is_leaving && (is_bare || (has_something && IsHopeless(response.status(), outage)))) {
        return absl::OkStatus();
      }
      AwaitRetry(response.status(), stop, outage);
      continue;
    }
    if (!outage.kind.empty()) base::Log(base::LogLevel::kInfo, "coordinator answers again");
    outage.kind.clear();
    outage.retry.Reset();
    if (gives_back) return absl::OkStatus();
    prefetcher_.Adopt(response->lease().id(),
                      {response->prefetches().begin(), response->prefetches().end()});
    Adopt(request, *response);
    if (IsIdle()) {
      if (is_leaving) return absl::OkStatus();
      AwaitChange(
          clock_.Now() + (request.worker().quarantine_reason().empty() ? kIdlePause : kSickPause),
          stop);
    } else {
      // That it is to leave is no news any more once it was said.
      AwaitChange(std::min(NextCall(*response, clock_.Now()), grace_end),
                  is_leaving ? std::stop_token() : stop);
    }
  }
}

bool LeaseLoop::IsHopeless(const absl::Status& status, Outage& outage) {
  outage.last_offer = std::min(outage.last_offer, clock_.Now() + kLeaveGrace);
  if (clock_.Now() + rpc::RetryDelay(status) < outage.last_offer) return false;
  base::Log(base::LogLevel::kWarning,
            "the coordinator does not answer, another worker will do the lease again",
            {{"error", status}});
  return true;
}

void LeaseLoop::AwaitRetry(const absl::Status& status, const std::stop_token& stop,
                           Outage& outage) {
  if (!stop.stop_requested() && Kind(status) != outage.kind) {
    base::Log(base::LogLevel::kWarning, "call of the coordinator failed, will go on trying",
              {{"error", status}});
    outage.kind = Kind(status);
  }
  if (absl::IsUnavailable(status)) outage.retry.Reset();
  AwaitRetry(clock_.Now() + outage.retry.PauseAfter(status));
  if (absl::IsUnavailable(status)) client_.AwaitConnection(clock_.Now() + kLastRetry);
}

}  // namespace mtmc::worker

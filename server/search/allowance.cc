// SPDX-License-Identifier: Apache-2.0
#include "server/search/allowance.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/rpc/error.h"
#include "server/search/event_loop.h"
#include "server/store/job_store.h"

namespace mtmc::search {

using boost::asio::awaitable;
using store::QuotaAccount;
using store::QuotaResource;

namespace {

// Less than this is as good as nothing: no evaluation is that short.
constexpr absl::Duration kLeastSlice = absl::Seconds(1);

// What the gateway takes for one call at most unless it is told otherwise, and what no
// prompt with a reply is below.
constexpr int64_t kCallTokens = 64'000;
constexpr int64_t kLeastTokens = 1'000;

// Between two tries when the store is away while a slice ends.
constexpr absl::Duration kRetryExtend = absl::Seconds(1);

int64_t RoomFor(const QuotaAccount& account) { return account.room() + account.own; }

}  // namespace

awaitable<absl::Status> Allowance::ReserveDeviceTime() {
  co_return co_await Reserve(
      QuotaResource::kDeviceTime, absl::ToInt64Microseconds(options_.quota_slice),
      absl::ToInt64Microseconds(std::min(kLeastSlice, options_.quota_slice)), microseconds_);
}

awaitable<absl::Status> Allowance::ReserveTokens() {
  int64_t wanted = kCallTokens;
  const v1::Job& job = journal_.job();
  if (job.budget().max_tokens() > 0) {
    wanted = std::clamp<int64_t>(job.budget().max_tokens() - job.budget_use().tokens(), 1, wanted);
  }
  const absl::Status status =
      co_await Reserve(QuotaResource::kTokens, wanted, std::min(wanted, kLeastTokens), tokens_);
  if (!status.ok() || !tokens_) co_return status;
  // A worker hears of no lease before all that was committed earlier is written; a language
  // model is asked by the search itself.
  const auto written = co_await Await<bool>(tools_.loop, interruption_, [this](Done<bool> done) {
    tools_.store.AfterFlush([done = std::move(done)] { done(true); });
  });
  co_return written.status();
}

awaitable<absl::Status> Allowance::Reserve(QuotaResource resource, int64_t wanted, int64_t least,
                                           std::optional<int64_t>& held) {
  absl::Duration backoff = options_.min_backoff;
  bool was_told = false;
  has_waited_ = false;
  while (true) {
    const auto account = tools_.store.FindQuota(journal_.name(), resource);
    absl::Status status = account.status();
    if (account.ok() && !account->allowed) {
      held.reset();
      co_return absl::OkStatus();
    }
    if (account.ok()) {
      // What was held before a restart may be in use.
      const int64_t amount = account->own > 0 ? account->own : std::min(wanted, RoomFor(*account));
      if (amount >= least || account->own > 0) {
        status = Hold(resource, amount);
        if (status.ok()) {
          held = amount;
          co_return status;
        }
      } else if (account->reserved == account->own) {
        co_return store::QuotaExceeded(store::ProjectOfJob(journal_.name()), resource, *account);
      } else if (!was_told) {
        was_told = true;
        co_await journal_.RecordNotice(absl::StrCat("the job waits for its project's quota: ",
                                                    store::DescribeAccount(resource, *account)));
      }
    }
    if (!status.ok() && !IsPassing(status) && rpc::ErrorReason(status) != "QUOTA_EXCEEDED") {
      co_return status;
    }
    if (interruption_.is_set()) co_return absl::CancelledError("interrupted");
    has_waited_ = true;
    co_await WaitFor(tools_.loop, interruption_, backoff);
    if (interruption_.is_set()) co_return absl::CancelledError("interrupted");
    backoff = std::min(2 * backoff, options_.max_backoff);
  }
}

absl::Status Allowance::Hold(QuotaResource resource, int64_t amount) {
  const absl::Status status = tools_.store.Commit(
      {.job_name = journal_.name(), .quota = {{.resource = resource, .reserved = amount}}});
  // What is not known to be refused may be there.
  journal_.NoteReserved();
  return status;
}

void Allowance::BeginDeviceTime(const std::string& key) {
  begin_ = tools_.clock.Now();
  key_ = key;
  if (microseconds_) Arm(absl::Microseconds(*microseconds_));
}

void Allowance::EndDeviceTime() {
  begin_.reset();
  alarm_.reset();
}

void Allowance::CallOff() {
  // A worker that was lost does nothing.
  if (begin_ && tools_.evaluator.HasBegun(key_)) {
    // A slice that is over is called off a moment late, and the quota counts what was held: so
    // does the job.
    const absl::Duration held =
        microseconds_ ? absl::Microseconds(*microseconds_) : absl::InfiniteDuration();
    called_off_ += std::clamp(tools_.clock.Now() - *begin_, absl::ZeroDuration(), held);
  }
  EndDeviceTime();
}

void Allowance::Arm(absl::Duration delay) {
  alarm_ = std::make_shared<int>(0);
  tools_.loop.PostAfter(delay, [this, alarm = std::weak_ptr<int>(alarm_)] {
    if (!alarm.expired()) Extend();
  });
}

// The slice is over, and the evaluation is not.
void Allowance::Extend() {
  // Its worker was lost; the slice begins anew with the next one.
  if (!tools_.evaluator.HasBegun(key_)) return;
  const auto account = tools_.store.FindQuota(journal_.name(), QuotaResource::kDeviceTime);
  if (!account.ok()) return Arm(kRetryExtend);
  // The limit is gone.
  if (!account->allowed) return;
  const int64_t more = std::min(absl::ToInt64Microseconds(options_.quota_slice), account->room());
  if (more <= 0) {
    journal_.RecordNoticeNow(std::string(store::QuotaExceeded(store::ProjectOfJob(journal_.name()),
                                                              QuotaResource::kDeviceTime, *account)
                                             .message()));
    return on_used_up();
  }
  const absl::Status status = Hold(QuotaResource::kDeviceTime, account->own + more);
  if (!status.ok()) return Arm(kRetryExtend);
  microseconds_ = account->own + more;
  Arm(absl::Microseconds(more));
}

}  // namespace mtmc::search

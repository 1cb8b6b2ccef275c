// SPDX-License-Identifier: Apache-2.0
#include "tests/load/tally.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "google/protobuf/util/time_util.h"

namespace mtmc::load {
namespace {

// The smallest that is not below a share `p` of all; reorders them.
double Percentile(std::vector<absl::Duration>& durations, double p) {
  if (durations.empty()) return 0;
  const auto index = static_cast<size_t>(p * static_cast<double>(durations.size() - 1) + 0.5);
  const auto at = durations.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(durations.begin(), at, durations.end());
  return absl::ToDoubleMilliseconds(*at);
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixNanos(google::protobuf::util::TimeUtil::TimestampToNanoseconds(time));
}

}  // namespace

Spread SpreadOf(std::vector<absl::Duration> durations) {
  return {.count = static_cast<int64_t>(durations.size()),
          .p50_ms = Percentile(durations, 0.5),
          .p99_ms = Percentile(durations, 0.99)};
}

void Tally::Begin(absl::Time now) {
  absl::MutexLock lock(&mu_);
  begin_ = now;
  totals_.evaluations = 0;
  totals_.inspections = 0;
  totals_.events = 0;
  totals_.jobs_ended = 0;
  ready_to_lease_.clear();
  result_to_lease_.clear();
}

Totals Tally::Read(absl::Time now) const {
  absl::MutexLock lock(&mu_);
  Totals totals = totals_;
  totals.time = std::max(now - begin_, absl::ZeroDuration());
  totals.ready_to_lease = SpreadOf(ready_to_lease_);
  totals.result_to_lease = SpreadOf(result_to_lease_);
  return totals;
}

void Tally::NoteLease(const v1::Lease& lease, absl::Time now) {
  const std::hash<std::string> hash;
  const bool is_evaluation = !lease.candidate().empty();
  const std::string& work = is_evaluation ? lease.candidate() : lease.job();
  absl::MutexLock lock(&mu_);
  const auto [found, is_new] = leases_.emplace(hash(work), hash(lease.id()));
  if (!is_new && found->second != hash(lease.id())) ++totals_.repeated_leases;
  if (!is_evaluation) return;
  open_[work].leased = now;
  Settle(work);
}

void Tally::NoteNextLease(absl::Duration since_result) {
  absl::MutexLock lock(&mu_);
  result_to_lease_.push_back(since_result);
}

void Tally::NoteResult(bool is_evaluation) {
  absl::MutexLock lock(&mu_);
  ++(is_evaluation ? totals_.evaluations : totals_.inspections);
}

void Tally::NoteEvent(const v1::JobEvent& event, bool is_in_order, bool is_first_watch) {
  absl::MutexLock lock(&mu_);
  ++totals_.events;
  if (!is_in_order) ++totals_.disordered_events;
  if (!is_first_watch || !event.has_candidate()) return;
  const v1::Candidate& candidate = event.candidate();
  if (candidate.state() == v1::Candidate::STATE_PENDING) {
    if (!candidate.has_program()) return;
    open_[candidate.name()].ready = FromProto(event.time());
    Settle(candidate.name());
  } else if (candidate.state() != v1::Candidate::STATE_RUNNING) {
    // Also one that no worker was asked about.
    open_.erase(candidate.name());
  }
}

// The two times of a candidate come from two streams, in any order.
void Tally::Settle(const std::string& candidate) {
  const auto found = open_.find(candidate);
  const Open& times = found->second;
  if (times.ready == absl::InfinitePast() || times.leased == absl::InfinitePast()) return;
  if (times.ready >= begin_) ready_to_lease_.push_back(times.leased - times.ready);
  open_.erase(found);
}

void Tally::NoteFinishedTwice() {
  absl::MutexLock lock(&mu_);
  ++totals_.twice_finished;
}

void Tally::NoteJobEnd() {
  absl::MutexLock lock(&mu_);
  ++totals_.jobs_ended;
}

void Tally::NoteBreak() {
  absl::MutexLock lock(&mu_);
  ++totals_.breaks;
}

void Tally::NoteError(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (totals_.errors++ == 0) totals_.first_error = status.ToString();
}

}  // namespace mtmc::load

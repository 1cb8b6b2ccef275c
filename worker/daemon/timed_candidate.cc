// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/timed_candidate.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "worker/measure/statistics.h"
#include "worker/verify/failure.h"

namespace mtmc::worker {
namespace {

// A digest costs a read of all outputs. Of 100 samples some 20 are checked: a
// program that computes only every other time passes with a chance of 1 in 10^6.
constexpr double kCheckedRatio = 0.2;

// The fresh execution comes in one of the turns that every measurement has.
constexpr int kFirstFreshTurn = 2;
constexpr int kLastFreshTurn = 5;

// Comparisons with the oracle where digests say nothing, and after one differed.
constexpr int kCompared = 2;
constexpr int kComparedAfterMismatch = 4;

// Executions on known inputs beside each further fresh one.
constexpr BlockRequest kWithNeighbours{.samples = 3, .warmups = 1};

// What the host's clock may see beyond the events in every block: scheduling of a
// busy host adds less than the first, and never to all.
constexpr double kUnseenSeconds = 100e-6;
constexpr double kUnseenRatio = 0.25;

}  // namespace

TimedCandidate::TimedCandidate(RunnerParty& runner, Verifier& verifier, Options options)
    : verifier_(verifier),
      options_(options),
      sampler_(runner, {.is_cold = options.is_cold,
                        .checked_ratio = kCheckedRatio,
                        .deadline = options.deadline}),
      random_(std::random_device()()) {
  for (const KeptInputs& inputs : verifier.kept()) kept_.push_back(inputs.id);
  // Without kept inputs there is no way back from fresh ones: they come last.
  fresh_turn_ = kept_.empty()
                    ? std::numeric_limits<int>::max()
                    : std::uniform_int_distribution<int>(kFirstFreshTurn, kLastFreshTurn)(random_);
  if (!IsReproducible()) num_to_compare_ = kCompared;
}

absl::Duration TimedCandidate::Remaining() const { return options_.deadline - absl::Now(); }

bool TimedCandidate::IsReproducible() const {
  const auto& kept = verifier_.kept();
  return std::all_of(kept.begin(), kept.end(),
                     [](const KeptInputs& inputs) { return inputs.is_reproducible; });
}

int64_t TimedCandidate::DrawKept() { return kept_[random_() % kept_.size()]; }

absl::Status TimedCandidate::Fail(v1::Failure failure) {
  failure_ = std::move(failure);
  return absl::AbortedError(failure_->message());
}

absl::Status TimedCandidate::Accept(Verification verification, const char* when) {
  if (verifier_.trouble()) {
    trouble_ = verifier_.trouble();
    return absl::AbortedError(trouble_->message);
  }
  ++num_checked_;
  if (!verification.failure) return absl::OkStatus();
  v1::Failure failure = *std::move(verification.failure);
  failure.set_stage(v1::STAGE_MEASURE);
  if (failure.kind() == v1::Failure::KIND_WRONG_RESULT) {
    constexpr absl::string_view kPrefix = "correct at first, wrong ";
    if (!absl::StartsWith(failure.message(), kPrefix)) {
      failure.set_message(absl::StrCat(kPrefix, when, ": ", failure.message()));
    }
  }
  return Fail(std::move(failure));
}

absl::StatusOr<SampleBlock> TimedCandidate::Take(const BlockRequest& request) {
  const int turn = turn_++;
  if (turn == fresh_turn_) return TakeFresh(request);
  if (turn > fresh_turn_ && num_to_compare_ > 0 && !kept_.empty()) {
    return TakeCompared(request);
  }
  return TakeOn(kept_, request);
}

absl::StatusOr<SampleBlock> TimedCandidate::TakeOn(const std::vector<int64_t>& kept,
                                                   const BlockRequest& request) {
  auto block = sampler_.Take(request, kept);
  if (!block.ok()) {
    failure_ = sampler_.failure();
    return block.status();
  }
  CompareDigests(block->checked);
  unseen_seconds_ =
      std::min(unseen_seconds_.value_or(block->max_unseen_seconds), block->max_unseen_seconds);
  return std::move(block->samples);
}

void TimedCandidate::CompareDigests(
    const std::vector<pipe::v1::RunnerResponse::CheckedExecution>& checked) {
  for (const auto& execution : checked) {
    for (const KeptInputs& inputs : verifier_.kept()) {
      if (inputs.id != execution.kept() || !inputs.is_reproducible) continue;
      ++num_checked_;
      // Rounding may differ from run to run where two runs happened to agree; the
      // oracle decides.
      if (inputs.digest != execution.digest()) {
        num_to_compare_ = std::max(num_to_compare_, kComparedAfterMismatch);
      }
    }
  }
}

// All executions of the turn on one set, so that it is known what the last one
// left.
absl::StatusOr<SampleBlock> TimedCandidate::TakeCompared(const BlockRequest& request) {
  const int64_t id = DrawKept();
  MTMC_ASSIGN_OR_RETURN(SampleBlock block, TakeOn({id}, request));
  --num_to_compare_;
  MTMC_RETURN_IF_ERROR(Accept(verifier_.CheckKept(id, Remaining()), "when timed"));
  return block;
}

absl::StatusOr<SampleBlock> TimedCandidate::TakeFresh(const BlockRequest& request) {
  if (!options_.has_fresh_inputs) return TakeOn(kept_, request);
  const auto fresh = verifier_.PrepareFresh(Remaining());
  if (!fresh) {
    if (verifier_.trouble()) {
      trouble_ = verifier_.trouble();
      return absl::AbortedError(trouble_->message);
    }
    // No memory for it: the other checks stand alone, and the counts say so.
    return TakeOn(kept_, request);
  }
  std::vector<int64_t> kept = kept_;
  kept.push_back(fresh->id);
  BlockRequest with_fresh = request;
  ++with_fresh.samples;
  auto block = sampler_.Take(with_fresh, kept);
  if (!block.ok()) {
    failure_ = sampler_.failure();
    return block.status();
  }
  CompareDigests(block->checked);
  for (const auto& execution : block->checked) {
    if (execution.kept() != fresh->id) continue;
    ++num_fresh_;
    if (execution.sample() < 0) continue;
    auto& seconds = block->samples.seconds;
    const auto position = seconds.begin() + execution.sample();
    const double fresh_seconds = *position;
    seconds.erase(position);
    if (!seconds.empty()) fresh_.push_back({fresh_seconds, Median(seconds), seconds});
  }
  MTMC_RETURN_IF_ERROR(
      Accept(verifier_.CheckFresh(*fresh, Remaining()), "on inputs that it had not seen"));
  return std::move(block->samples);
}

absl::Status TimedCandidate::Conclude(const std::vector<double>& usual) {
  if (kept_.empty()) {
    MTMC_RETURN_IF_ERROR(Accept(verifier_.Recheck(Remaining()), "when timed"));
  }
  if (turn_ <= fresh_turn_ && options_.has_fresh_inputs) {
    MTMC_RETURN_IF_ERROR(TakeFresh(kWithNeighbours).status());
  }
  MTMC_RETURN_IF_ERROR(CheckFreshTimes(usual));
  MTMC_RETURN_IF_ERROR(CheckModes(usual));
  while (num_to_compare_ > 0 && !kept_.empty()) {
    MTMC_RETURN_IF_ERROR(TakeCompared({.samples = 1}).status());
  }
  return CheckUnseen(usual);
}

absl::Status TimedCandidate::CheckFreshTimes(const std::vector<double>& usual) {
  while (!fresh_.empty()) {
    const FreshTime judged = JudgeFresh(fresh_, usual);
    fresh_slowdown_ = judged == FreshTime::kAsUsual ? 0 : FreshSlowdown(fresh_, usual);
    if (judged == FreshTime::kReplayed) {
      return Fail(MakeFailure(
          v1::Failure::KIND_CHEAT, v1::STAGE_MEASURE,
          absl::StrFormat("%.3g times as slow on inputs that it had not seen: it replays results",
                          fresh_slowdown_)));
    }
    if (judged == FreshTime::kAsUsual || num_fresh_ >= kFreshForReplay) break;
    MTMC_ASSIGN_OR_RETURN(const bool has_more, TakeMoreFresh());
    if (!has_more) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TimedCandidate::TakeMoreFresh() {
  const int before = num_fresh_;
  MTMC_RETURN_IF_ERROR(TakeFresh(kWithNeighbours).status());
  return num_fresh_ > before;
}

absl::Status TimedCandidate::CheckModes(const std::vector<double>& usual) {
  if (!HasFastMode(usual) || !options_.has_fresh_inputs) return absl::OkStatus();
  while (!fresh_.empty() && !IsFastOnKnownInputsOnly(fresh_, usual)) {
    // The first that is fast as well clears the program.
    if (fresh_.back().seconds < FastLimit(usual)) return absl::OkStatus();
    if (num_fresh_ >= kMostFreshForModes) return absl::OkStatus();
    MTMC_ASSIGN_OR_RETURN(const bool has_more, TakeMoreFresh());
    if (!has_more) return absl::OkStatus();
  }
  if (fresh_.empty()) return absl::OkStatus();
  return Fail(MakeFailure(
      v1::Failure::KIND_CHEAT, v1::STAGE_MEASURE,
      "a part of its executions is far faster than the rest, and none on inputs that it had not "
      "seen: it replays results"));
}

absl::Status TimedCandidate::CheckUnseen(const std::vector<double>& usual) {
  const double unseen = unseen_seconds_.value_or(0);
  const double limit = std::max(kUnseenSeconds, kUnseenRatio * Median(usual));
  if (unseen <= limit) return absl::OkStatus();
  return Fail(MakeFailure(
      v1::Failure::KIND_CHEAT, v1::STAGE_MEASURE,
      absl::StrFormat("the device worked %.3g us longer than the events show", unseen * 1e6)));
}

void TimedCandidate::AddCounts(v1::VerificationSummary& checks) const {
  checks.set_timed_executions(checks.timed_executions() + sampler_.num_timed());
  checks.set_checked_executions(checks.checked_executions() + num_checked_);
  checks.set_fresh_executions(checks.fresh_executions() + num_fresh_);
  if (fresh_slowdown_ > 0) checks.set_fresh_slowdown(fresh_slowdown_);
}

}  // namespace mtmc::worker

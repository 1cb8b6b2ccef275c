// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/confirmation.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "worker/measure/comparison.h"
#include "worker/verify/failure.h"

namespace mtmc::worker {
namespace {

constexpr double kSurprisingSpeedup = 3;

// Candidates that are slower than the best by less are often taken for as fast
// (lineage.h: 2 % or the noise).
constexpr double kAboutAsFast = 0.9;

// One profiled execution stands against the median of many: it may be the first
// after a pause, with a lower clock.
constexpr double kActivityRatio = 1.5;
constexpr double kActivitySeconds = 5e-6;

bool LieApart(const v1::Comparison& a, const v1::Comparison& b) {
  const double floor = 1 + ComparisonOptions().floor_ratio;
  return std::max(a.speedup_low(), b.speedup_low()) >
         floor * std::min(a.speedup_high(), b.speedup_high());
}

}  // namespace

Confirmation DecideConfirmation(const v1::EvaluationRequest& request,
                                const MeasuredSession& session) {
  if (request.options().omit_confirmation() || session.comparisons.empty()) {
    return Confirmation::kNone;
  }
  const bool is_surprising =
      std::any_of(session.comparisons.begin(), session.comparisons.end(),
                  [](const auto& comparison) { return comparison.speedup() > kSurprisingSpeedup; });
  const bool is_faster = session.comparisons.front().outcome() == v1::Comparison::OUTCOME_FASTER;
  if (!is_surprising && !is_faster) return Confirmation::kNone;
  return MayWin(request, session) ? Confirmation::kNeeded : Confirmation::kSkipped;
}

bool IsAskedEverything(const v1::EvaluationRequest& request) {
  return request.speedup_to_beat() <= 0 && !request.defers_confirmation();
}

bool IsAhead(const v1::EvaluationRequest& request, const MeasuredSession& session) {
  return session.comparisons.empty() || request.speedup_to_beat() <= 0 ||
         session.comparisons.front().speedup() > request.speedup_to_beat();
}

bool MayWin(const v1::EvaluationRequest& request, const MeasuredSession& session) {
  return !request.defers_confirmation() && IsAhead(request, session);
}

bool IsWorthProfile(const v1::EvaluationRequest& request, const v1::Evaluation& evaluation) {
  return request.needs_profile() || evaluation.comparisons().empty() ||
         evaluation.comparisons(0).speedup() >= kAboutAsFast * request.speedup_to_beat();
}

void Confirm(const MeasuredSession& second, v1::Evaluation& evaluation) {
  *evaluation.mutable_confirmation() = second.measurement;
  *evaluation.mutable_confirmed() = second.comparisons.front();
  v1::Comparison& first = *evaluation.mutable_comparisons(0);
  const v1::Comparison::Outcome second_outcome = evaluation.confirmed().outcome();
  const bool is_refuted = first.outcome() == v1::Comparison::OUTCOME_FASTER &&
                          (second_outcome == v1::Comparison::OUTCOME_SAME ||
                           second_outcome == v1::Comparison::OUTCOME_SLOWER);
  if (is_refuted || LieApart(first, evaluation.confirmed())) {
    first.set_outcome(v1::Comparison::OUTCOME_AMBIGUOUS);
  }
}

std::optional<v1::Failure> CheckActivity(const kernel::Program& program, const v1::Profile& profile,
                                         const v1::Measurement& measurement) {
  if (profile.source() != "cupti" || !measurement.is_cold()) return std::nullopt;
  double seconds = 0;
  // One of each step.
  auto step = program.steps.begin();
  for (const v1::KernelActivity& kernel : profile.kernels()) {
    const bool is_call =
        step != program.steps.end() && std::holds_alternative<kernel::LibraryCall>(*step++);
    if (!(is_call && program.has_capture)) seconds += kernel.seconds();
  }
  const double median = measurement.median_seconds();
  if (seconds <= kActivityRatio * median + kActivitySeconds) return std::nullopt;
  return MakeFailure(
      v1::Failure::KIND_CHEAT, v1::STAGE_PROFILE,
      absl::StrFormat("its kernels take %.4g ms by CUPTI, but the plan was timed at %.4g ms",
                      seconds * 1e3, median * 1e3));
}

}  // namespace mtmc::worker

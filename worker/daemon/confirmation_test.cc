// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/confirmation.h"

#include <catch2/catch.hpp>

namespace mtmc::worker {
namespace {

MeasuredSession Session(v1::Comparison::Outcome outcome, double low, double high) {
  MeasuredSession session;
  v1::Comparison& comparison = session.comparisons.emplace_back();
  comparison.set_outcome(outcome);
  comparison.set_speedup((low + high) / 2);
  comparison.set_speedup_low(low);
  comparison.set_speedup_high(high);
  return session;
}

v1::Comparison::Outcome AfterBoth(const MeasuredSession& first, const MeasuredSession& second) {
  v1::Evaluation evaluation;
  *evaluation.add_comparisons() = first.comparisons.front();
  Confirm(second, evaluation);
  CHECK(evaluation.confirmed().speedup() == second.comparisons.front().speedup());
  return evaluation.comparisons(0).outcome();
}

constexpr auto kFaster = v1::Comparison::OUTCOME_FASTER;
constexpr auto kSame = v1::Comparison::OUTCOME_SAME;
constexpr auto kAmbiguous = v1::Comparison::OUTCOME_AMBIGUOUS;

TEST_CASE("Winners and surprises are measured again", "[daemon]") {
  v1::EvaluationRequest request;
  CHECK(DecideConfirmation(request, Session(kFaster, 1.1, 1.2)) == Confirmation::kNeeded);
  CHECK(DecideConfirmation(request, Session(kAmbiguous, 1, 9)) == Confirmation::kNeeded);
  CHECK(DecideConfirmation(request, Session(kSame, 0.99, 1.01)) == Confirmation::kNone);
  CHECK(DecideConfirmation(request, {}) == Confirmation::kNone);
  request.mutable_options()->set_omit_confirmation(true);
  CHECK(DecideConfirmation(request, Session(kFaster, 1.1, 1.2)) == Confirmation::kNone);
}

TEST_CASE("Who is faster than the baseline and not the fastest is no winner", "[daemon]") {
  v1::EvaluationRequest request;
  request.set_speedup_to_beat(1.5);

  CHECK(DecideConfirmation(request, Session(kFaster, 1.1, 1.2)) == Confirmation::kSkipped);
  CHECK(DecideConfirmation(request, Session(kFaster, 1.5, 1.7)) == Confirmation::kNeeded);
  CHECK(DecideConfirmation(request, Session(kSame, 0.99, 1.01)) == Confirmation::kNone);
  // So it is with a surprise.
  request.set_speedup_to_beat(9);
  CHECK(DecideConfirmation(request, Session(kFaster, 4, 5)) == Confirmation::kSkipped);
  CHECK(DecideConfirmation(request, Session(kFaster, 10, 11)) == Confirmation::kNeeded);
}

TEST_CASE("Everything is asked of whoever may become the best", "[daemon]") {
  v1::EvaluationRequest request;
  // Nobody is to be beaten: slower than the baseline is the best so far.
  CHECK(MayWin(request, Session(kSame, 0.5, 0.6)));
  request.set_speedup_to_beat(1.5);
  CHECK_FALSE(MayWin(request, Session(kFaster, 1.1, 1.2)));
  CHECK(MayWin(request, Session(kFaster, 1.6, 1.7)));
}

TEST_CASE("A winner whose confirmation is deferred is ahead, and asked no more than others",
          "[daemon]") {
  v1::EvaluationRequest request;
  request.set_defers_confirmation(true);
  const MeasuredSession session = Session(kFaster, 4, 5);

  CHECK(IsAhead(request, session));
  CHECK_FALSE(MayWin(request, session));
  CHECK(DecideConfirmation(request, session) == Confirmation::kSkipped);
}

TEST_CASE("Only what is about as fast as the best is profiled", "[daemon]") {
  v1::EvaluationRequest request;
  v1::Evaluation evaluation;
  request.set_speedup_to_beat(2);
  CHECK(IsWorthProfile(request, evaluation));
  evaluation.add_comparisons()->set_speedup(1.7);
  CHECK_FALSE(IsWorthProfile(request, evaluation));
  evaluation.mutable_comparisons(0)->set_speedup(1.95);
  CHECK(IsWorthProfile(request, evaluation));
  evaluation.mutable_comparisons(0)->set_speedup(0.1);
  CHECK_FALSE(IsWorthProfile(request, evaluation));
  request.set_needs_profile(true);
  CHECK(IsWorthProfile(request, evaluation));
  request.set_needs_profile(false);
  request.set_speedup_to_beat(0);
  CHECK(IsWorthProfile(request, evaluation));
}

TEST_CASE("A second session that agrees changes nothing", "[daemon]") {
  const MeasuredSession first = Session(kFaster, 1.50, 1.52);

  CHECK(AfterBoth(first, Session(kFaster, 1.51, 1.53)) == kFaster);
  // Apart, but by less than the noise floor.
  CHECK(AfterBoth(first, Session(kFaster, 1.53, 1.55)) == kFaster);
}

TEST_CASE("Sessions that disagree make the comparison ambiguous", "[daemon]") {
  const MeasuredSession first = Session(kFaster, 1.50, 1.52);

  CHECK(AfterBoth(first, Session(kFaster, 1.60, 1.62)) == kAmbiguous);
  CHECK(AfterBoth(Session(kFaster, 1.018, 1.03), Session(kSame, 1.0, 1.017)) == kAmbiguous);
}

TEST_CASE("Kernels that take longer than their plan was timed at are a cheat", "[daemon]") {
  kernel::Program program;
  program.steps = {kernel::Launch(), kernel::Launch()};
  v1::Profile profile;
  profile.set_source("cupti");
  profile.add_kernels()->set_seconds(60e-6);
  profile.add_kernels()->set_seconds(60e-6);
  v1::Measurement measurement;
  measurement.set_is_cold(true);
  measurement.set_median_seconds(50e-6);

  const auto failure = CheckActivity(program, profile, measurement);
  measurement.set_median_seconds(100e-6);

  REQUIRE(failure);
  CHECK(failure->kind() == v1::Failure::KIND_CHEAT);
  CHECK_FALSE(CheckActivity(program, profile, measurement));
}

TEST_CASE("Library calls may overlap in a plan that is captured, kernels may not", "[daemon]") {
  kernel::Program program;
  program.steps = {kernel::LibraryCall(), kernel::Launch()};
  v1::Profile profile;
  profile.set_source("cupti");
  profile.add_kernels()->set_seconds(16e-3);
  profile.add_kernels()->set_seconds(1e-3);
  v1::Measurement measurement;
  measurement.set_is_cold(true);
  measurement.set_median_seconds(9e-3);

  CHECK(CheckActivity(program, profile, measurement));
  program.has_capture = true;
  CHECK_FALSE(CheckActivity(program, profile, measurement));
  profile.mutable_kernels(1)->set_seconds(16e-3);
  CHECK(CheckActivity(program, profile, measurement));
}

}  // namespace
}  // namespace mtmc::worker

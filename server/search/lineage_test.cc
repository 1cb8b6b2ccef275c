// SPDX-License-Identifier: Apache-2.0
#include "server/search/lineage.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

namespace mtmc::search {
namespace {

// A correct candidate whose first session found `speedup`.
v1::Candidate Measured(int trial, double speedup) {
  v1::Candidate candidate;
  candidate.set_trial(trial);
  candidate.set_state(v1::Candidate::STATE_EVALUATED);
  v1::Evaluation& evaluation = *candidate.mutable_evaluation();
  evaluation.set_verdict(v1::Evaluation::VERDICT_CORRECT);
  evaluation.mutable_measurement()->set_median_seconds(1 / speedup);
  v1::Comparison& comparison = *evaluation.add_comparisons();
  comparison.set_speedup(speedup);
  comparison.set_outcome(v1::Comparison::OUTCOME_FASTER);
  return candidate;
}

// As Measured, with a second session that found `second`; they agree or not.
v1::Candidate Confirmed(int trial, double speedup, double second, bool do_agree) {
  v1::Candidate candidate = Measured(trial, speedup);
  v1::Evaluation& evaluation = *candidate.mutable_evaluation();
  evaluation.mutable_confirmed()->set_speedup(second);
  if (!do_agree) evaluation.mutable_comparisons(0)->set_outcome(v1::Comparison::OUTCOME_AMBIGUOUS);
  return candidate;
}

TEST_CASE("Speedup is that of the first session where the second one agrees", "[search]") {
  CHECK(*Speedup(Measured(1, 2.0)) == 2.0);
  CHECK(*Speedup(Confirmed(1, 2.0, 1.99, /*do_agree=*/true)) == 2.0);
}

TEST_CASE("Speedup is the lower one where two sessions disagree", "[search]") {
  CHECK(*Speedup(Confirmed(1, 2.0, 1.0, /*do_agree=*/false)) == 1.0);
  CHECK(*Speedup(Confirmed(1, 1.5, 2.0, /*do_agree=*/false)) == 1.5);
}

TEST_CASE("Speedup is absent of a candidate that is not correct", "[search]") {
  v1::Candidate candidate = Measured(1, 2.0);
  candidate.mutable_evaluation()->set_verdict(v1::Evaluation::VERDICT_WRONG);

  CHECK_FALSE(Speedup(candidate));
}

TEST_CASE("No candidate is the best by a session that the second one refuted", "[search]") {
  Lineage lineage;
  lineage.Put(Measured(0, 1.0));
  lineage.Put(Measured(1, 1.4));
  lineage.Put(Confirmed(2, 3.5, 1.1, /*do_agree=*/false));

  CHECK(lineage.Best() == 1);
}

TEST_CASE("Who was not asked all that winners are takes no place by less than the least gain",
          "[search]") {
  v1::Candidate near = Measured(1, 1.005);
  v1::Candidate faster = Measured(2, 1.0 + kLeastGain / 8);
  near.mutable_evaluation()->set_skipped_confirmation(true);
  faster.mutable_evaluation()->set_skipped_confirmation(true);
  Lineage lineage;
  lineage.Put(Measured(0, 1.0));
  lineage.Put(near);
  CHECK(lineage.Best() == 0);
  CHECK(lineage.BestWith(near) == 0);
  CHECK(lineage.BestOf(1, {0}) == 1);

  near.mutable_evaluation()->set_skipped_confirmation(false);
  lineage.Put(near);
  CHECK(lineage.Best() == 1);
  lineage.Put(faster);
  CHECK(lineage.Best() == 2);
}

TEST_CASE("The best that is confirmed may be another one than the best", "[search]") {
  Lineage lineage;
  CHECK_FALSE(lineage.BestConfirmed());
  v1::Candidate start = Measured(0, 1.0);
  start.mutable_evaluation()->set_skipped_confirmation(true);
  lineage.Put(start);
  CHECK(lineage.Best() == 0);
  CHECK_FALSE(lineage.BestConfirmed());
  CHECK_FALSE(IsConfirmed(start));

  lineage.Put(Measured(1, 1.2));
  v1::Candidate best = Measured(2, 1.5);
  best.mutable_evaluation()->set_skipped_confirmation(true);
  lineage.Put(best);
  CHECK(lineage.Best() == 2);
  CHECK(lineage.BestConfirmed() == 1);

  // What the confirmation would make of it.
  best.mutable_evaluation()->set_skipped_confirmation(false);
  CHECK(lineage.BestWith(best) == 2);
  best.mutable_evaluation()->set_verdict(v1::Evaluation::VERDICT_WRONG);
  CHECK(lineage.BestWith(best) == 1);
  lineage.Put(best);
  CHECK(lineage.Best() == 1);
}

TEST_CASE("A lineage keeps of a finished candidate what is decided by", "[search]") {
  v1::Candidate candidate = Confirmed(0, 2.0, 1.9, /*do_agree=*/true);
  candidate.mutable_decision()->add_choices()->set_action("tile");
  candidate.mutable_decision()->set_step(3);
  v1::Evaluation& evaluation = *candidate.mutable_evaluation();
  evaluation.mutable_profile()->add_kernels()->set_kernel("k");
  evaluation.mutable_measurement()->add_samples_seconds(1);
  evaluation.add_variants()->set_median_seconds(1);
  evaluation.add_spans();
  evaluation.mutable_checks()->set_oracle("fp64");
  v1::Candidate running = candidate;
  running.set_trial(1);
  running.set_state(v1::Candidate::STATE_RUNNING);
  const std::string before = candidate.SerializeAsString();
  const std::string copy = Lineage::Kept(candidate).SerializeAsString();
  Lineage lineage;
  lineage.Put(candidate);
  lineage.Put(running);

  const v1::Candidate& kept = lineage.candidates[0];
  CHECK(kept.SerializeAsString() == copy);
  CHECK(candidate.SerializeAsString() == before);
  CHECK(Speedup(kept) == 2.0);
  CHECK(kept.decision().step() == 3);
  CHECK(kept.evaluation().profile().kernels_size() == 1);
  CHECK(kept.ByteSizeLong() < candidate.ByteSizeLong());
  CHECK(kept.decision().choices().empty());
  CHECK(kept.evaluation().variants().empty());
  // It is recorded again as it is.
  CHECK(lineage.candidates[1].SerializeAsString() == running.SerializeAsString());
}

TEST_CASE("BestWith is the best of the lineage that the newest candidate completes", "[search]") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Lineage lineage;
    const int count = 1 + static_cast<int>(random() % 6);
    for (int trial = 0; trial < count; ++trial) {
      // Few values, so that equals occur, and wrong ones between them.
      v1::Candidate candidate = Measured(trial, 1 + 0.5 * static_cast<double>(random() % 3));
      if (random() % 3 == 0) {
        candidate.mutable_evaluation()->set_verdict(v1::Evaluation::VERDICT_WRONG);
      }
      v1::Candidate begun;
      begun.set_trial(trial);
      lineage.Put(begun);
      Lineage completed = lineage;
      completed.Put(candidate);

      CHECK(lineage.BestWith(candidate) == completed.Best());

      lineage = completed;
    }
  }
}

}  // namespace
}  // namespace mtmc::search

// SPDX-License-Identifier: Apache-2.0
#include "server/search/strategy.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/search/known_step.h"
#include "server/search/lineage.h"
#include "server/search/reward.h"

namespace mtmc::search {
namespace {

// A correct candidate with a speedup, or a failed one without.
v1::Candidate Evaluated(int trial, std::optional<double> speedup) {
  v1::Candidate candidate;
  candidate.set_name("j/candidates/c" + std::to_string(trial));
  candidate.set_trial(trial);
  candidate.set_state(v1::Candidate::STATE_EVALUATED);
  auto& evaluation = *candidate.mutable_evaluation();
  if (!speedup) {
    evaluation.mutable_failure()->set_kind(v1::Failure::KIND_WRONG_RESULT);
    return candidate;
  }
  evaluation.set_verdict(v1::Evaluation::VERDICT_CORRECT);
  evaluation.mutable_measurement()->set_median_seconds(1 / *speedup);
  evaluation.add_comparisons()->set_speedup(*speedup);
  return candidate;
}

// One candidate per speedup, the start candidate first.
Lineage MakeLineage(const std::vector<std::optional<double>>& speedups) {
  Lineage lineage;
  for (const auto& speedup : speedups) {
    lineage.Put(Evaluated(static_cast<int>(lineage.candidates.size()), speedup));
  }
  return lineage;
}

// Trial `trial` as a known step of the built-in coder to candidate `known`.
v1::Candidate Repeated(Lineage& lineage, int known, int trial) {
  v1::Candidate& original = lineage.candidates[static_cast<size_t>(known)];
  original.mutable_program()->set_sha256("program of " + std::to_string(known));
  v1::Candidate candidate = original;
  candidate.set_name("j/candidates/c" + std::to_string(trial));
  candidate.set_trial(trial);
  candidate.set_coder(kBuiltinCoder);
  candidate.mutable_evaluation()->set_is_cached(true);
  return candidate;
}

v1::Job MakeJob(const std::string& strategy) {
  v1::Job job;
  v1::SearchOptions& search = *job.mutable_search();
  if (strategy == "mtmc") search.mutable_mtmc()->set_max_steps(8);
  if (strategy == "random") search.mutable_random()->set_max_steps(8);
  if (strategy == "greedy") search.mutable_greedy();
  job.mutable_search()->set_speed_of_light_ratio(0.95);
  job.mutable_budget()->set_max_trials(100);
  return job;
}

Selection Select(const v1::Job& job, const Lineage& lineage) {
  const auto next = MakeStrategy(job)->Next(lineage);
  REQUIRE(std::holds_alternative<Selection>(next));
  return std::get<Selection>(next);
}

v1::Job::EndReason EndOf(const v1::Job& job, const Lineage& lineage) {
  const auto next = MakeStrategy(job)->Next(lineage);
  REQUIRE(std::holds_alternative<End>(next));
  return std::get<End>(next).reason;
}

std::vector<v1::Action> Actions(const std::vector<v1::Action::Type>& types) {
  std::vector<v1::Action> actions;
  for (const auto type : types) actions.emplace_back().set_type(type);
  return actions;
}

}  // namespace

TEST_CASE("MtmcStrategy goes on from a faster candidate", "[search]") {
  CHECK(Select(MakeJob("mtmc"), MakeLineage({1.0, 1.5})).parent == 1);
}

TEST_CASE("MtmcStrategy goes on from a candidate that is as fast", "[search]") {
  CHECK(Select(MakeJob("mtmc"), MakeLineage({1.0, 1.01})).parent == 1);
}

TEST_CASE("MtmcStrategy falls back to the parent of a slower or failed candidate", "[search]") {
  CHECK(Select(MakeJob("mtmc"), MakeLineage({1.0, 1.5, 1.2})).parent == 1);
  CHECK(Select(MakeJob("mtmc"), MakeLineage({1.0, 1.5, std::nullopt})).parent == 1);
}

TEST_CASE("MtmcStrategy tells the policy the steps of its rollout", "[search]") {
  const Selection selection = Select(MakeJob("mtmc"), MakeLineage({1.0, 1.5, std::nullopt}));

  CHECK(selection.step == 2);
  REQUIRE(selection.history.size() == 2);
  CHECK(selection.history[0].outcome == Outcome::kFaster);
  CHECK(selection.history[1].outcome == Outcome::kWrong);
}

TEST_CASE("MtmcStrategy begins a new rollout from the best candidate after max_steps", "[search]") {
  v1::Job job = MakeJob("mtmc");
  job.mutable_search()->mutable_mtmc()->set_max_steps(2);

  const Selection second = Select(job, MakeLineage({1.0, 2.0, 1.5}));
  const Selection third = Select(job, MakeLineage({1.0, 2.0, 1.5, 1.0, 1.0}));

  CHECK(second.rollout == 1);
  CHECK(second.parent == 1);
  CHECK(second.history.empty());
  CHECK(third.rollout == 2);
  CHECK(third.parent == 0);
}

TEST_CASE("A drawn stop ends a rollout and not the search", "[search]") {
  Lineage lineage = MakeLineage({1.0, 2.0});
  lineage.stops = {{.after_trial = 1}, {.after_trial = 1}, {.after_trial = 1}};

  const Selection selection = Select(MakeJob("mtmc"), lineage);

  CHECK(selection.rollout == 3);
  CHECK(selection.step == 0);
  CHECK(selection.parent == 1);
}

TEST_CASE("A search goes on from the next best when nothing is left of the best", "[search]") {
  const std::string strategy = GENERATE("mtmc", "random", "greedy");
  CAPTURE(strategy);
  Lineage lineage = MakeLineage({1.0, 2.0, 1.5});
  lineage.stops = {{.after_trial = 2, .had_choice = false}};
  CHECK(Select(MakeJob(strategy), lineage).parent != 1);

  lineage.stops.push_back({.after_trial = 2, .had_choice = false});
  Select(MakeJob(strategy), lineage);

  lineage.stops.push_back({.after_trial = 2, .had_choice = false});
  CHECK(EndOf(MakeJob(strategy), lineage) == v1::Job::END_REASON_NO_ACTION);
}

TEST_CASE("A search whose start failed goes on from it until something is right", "[search]") {
  CHECK(Select(MakeJob("mtmc"), MakeLineage({std::nullopt})).parent == 0);
  CHECK(Select(MakeJob("mtmc"), MakeLineage({std::nullopt, std::nullopt})).parent == 0);
  CHECK(Select(MakeJob("mtmc"), MakeLineage({std::nullopt, std::nullopt, 0.5})).parent == 2);

  Lineage lineage = MakeLineage({std::nullopt});
  lineage.stops = {{.after_trial = 0, .had_choice = false}};
  CHECK(EndOf(MakeJob("mtmc"), lineage) == v1::Job::END_REASON_NO_ACTION);
}

TEST_CASE("No rollout begins with a start that failed once something is right", "[search]") {
  v1::Job job = MakeJob("mtmc");
  job.mutable_search()->mutable_mtmc()->set_max_steps(1);

  // Every trial is a rollout, and every second one would begin with the start.
  CHECK(Select(job, MakeLineage({std::nullopt, 1.0})).parent == 1);
  CHECK(Select(job, MakeLineage({std::nullopt, 1.0, 0.5})).parent == 1);
}

TEST_CASE("Every strategy ends at its limits", "[search]") {
  const std::string strategy = GENERATE("mtmc", "greedy", "random");
  CAPTURE(strategy);
  v1::Job job = MakeJob(strategy);
  job.mutable_budget()->set_max_trials(3);
  CHECK(EndOf(job, MakeLineage({1.0, 1.1, 1.2, 1.3})) == v1::Job::END_REASON_TRIALS);

  job.mutable_search()->set_patience(2);
  CHECK(EndOf(job, MakeLineage({1.0, 0.9, 0.8})) == v1::Job::END_REASON_PATIENCE);

  Lineage lineage = MakeLineage({1.1});
  lineage.candidates[0].mutable_evaluation()->mutable_profile()->set_speed_of_light_ratio(0.96);
  CHECK(EndOf(job, lineage) == v1::Job::END_REASON_SPEED_OF_LIGHT);
}

TEST_CASE("Known steps use up neither trials nor patience", "[search]") {
  const std::string strategy = GENERATE("mtmc", "greedy", "random");
  CAPTURE(strategy);
  v1::Job job = MakeJob(strategy);
  job.mutable_budget()->set_max_trials(2);
  job.mutable_search()->set_patience(2);
  Lineage lineage = MakeLineage({1.0, 0.9});
  for (int trial = 2; trial < 5; ++trial) lineage.Put(Repeated(lineage, 1, trial));
  Select(job, lineage);

  lineage.Put(Evaluated(5, 0.8));
  CHECK(EndOf(job, lineage) == v1::Job::END_REASON_TRIALS);
}

TEST_CASE("A rollout goes on from the candidate that a known step leads to", "[search]") {
  Lineage lineage = MakeLineage({1.0, 1.5, 1.2});
  lineage.Put(Repeated(lineage, 1, 3));

  const Selection selection = Select(MakeJob("mtmc"), lineage);

  CHECK(selection.parent == 1);
  CHECK(selection.step == 3);
  CHECK(selection.history.back().trial == 3);
}

TEST_CASE("No search begins again with the repetition of an exhausted candidate", "[search]") {
  const std::string strategy = GENERATE("mtmc", "random", "greedy");
  CAPTURE(strategy);
  Lineage lineage = MakeLineage({1.0, 1.5});
  lineage.Put(Repeated(lineage, 1, 2));
  lineage.stops = {{.after_trial = 2, .had_choice = false}};
  CHECK(Select(MakeJob(strategy), lineage).parent == 0);

  lineage.stops.push_back({.after_trial = 2, .had_choice = false});
  CHECK(EndOf(MakeJob(strategy), lineage) == v1::Job::END_REASON_NO_ACTION);
}

TEST_CASE("A program of a rewritten graph has another speed of light", "[search]") {
  Lineage lineage = MakeLineage({1.5});
  v1::Candidate& candidate = lineage.candidates[0];
  candidate.mutable_evaluation()->mutable_profile()->set_speed_of_light_ratio(2);
  REQUIRE(FindEnd(MakeJob("mtmc"), lineage));

  candidate.set_schedule("rewrite reduce_first node=sum\n");

  CHECK_FALSE(FindEnd(MakeJob("mtmc"), lineage));
}

TEST_CASE("No strategy ends at the speed of light behind the baseline", "[search]") {
  Lineage lineage = MakeLineage({0.94});
  lineage.candidates[0].mutable_evaluation()->mutable_profile()->set_speed_of_light_ratio(0.96);

  CHECK_FALSE(FindEnd(MakeJob("mtmc"), lineage));
}

TEST_CASE("GreedyStrategy acts on the best candidate", "[search]") {
  CHECK(Select(MakeJob("greedy"), MakeLineage({1.0, 1.5, 1.2})).parent == 1);
}

TEST_CASE("GreedyStrategy prefers fusion to tiling and anything to stop", "[search]") {
  const auto strategy = MakeStrategy(MakeJob("greedy"));

  CHECK(*strategy->Distribution(Actions({v1::Action::TYPE_STOP, v1::Action::TYPE_TILE,
                                         v1::Action::TYPE_FUSE})) == std::vector<double>{0, 0, 1});
}

TEST_CASE("RandomStrategy draws every action but stop alike", "[search]") {
  const auto strategy = MakeStrategy(MakeJob("random"));

  CHECK(*strategy->Distribution(
            Actions({v1::Action::TYPE_TILE, v1::Action::TYPE_STOP, v1::Action::TYPE_FUSE})) ==
        std::vector<double>{0.5, 0, 0.5});
}

TEST_CASE("MtmcStrategy leaves the choice to the policy", "[search]") {
  CHECK_FALSE(MakeStrategy(MakeJob("mtmc"))->Distribution(Actions({v1::Action::TYPE_STOP})));
}

TEST_CASE("Lineage takes the oldest of equally fast candidates for best", "[search]") {
  CHECK(MakeLineage({1.0, 1.5, 1.5}).Best() == 1);
  CHECK_FALSE(MakeLineage({std::nullopt}).Best());
}

TEST_CASE("Lineage follows the event log", "[search]") {
  Lineage lineage;
  v1::JobEvent candidate, stop;
  *candidate.mutable_candidate() = Evaluated(0, 1.0);
  stop.mutable_decision()->add_choices();

  lineage.Apply(candidate);
  lineage.Apply(stop);

  CHECK(lineage.trials() == 0);
  REQUIRE(lineage.stops.size() == 1);
  CHECK_FALSE(lineage.stops[0].had_choice);
}

TEST_CASE("Reward grows with how far a candidate came", "[search]") {
  const v1::Candidate parent = Evaluated(0, 1.0);
  v1::Candidate rejected;
  rejected.set_state(v1::Candidate::STATE_REJECTED);
  v1::Candidate crashed = Evaluated(1, std::nullopt);
  crashed.mutable_evaluation()->mutable_failure()->set_kind(v1::Failure::KIND_CRASH);

  std::vector<double> rewards;
  for (const v1::Candidate& child :
       {rejected, crashed, Evaluated(1, std::nullopt), Evaluated(1, 0.5), Evaluated(1, 1.0),
        Evaluated(1, 1.2), Evaluated(1, 2.0)}) {
    rewards.push_back(Reward(parent, child, 0));
  }

  CHECK(std::is_sorted(rewards.begin(), rewards.end()));
  CHECK_THAT(rewards.back(), Catch::Matchers::WithinRel(1.3, 1e-9));
  CHECK_THAT(rewards.front(), Catch::Matchers::WithinRel(-1.0, 1e-9));
}

TEST_CASE("Reward decays with the step and is capped", "[search]") {
  const v1::Candidate parent = Evaluated(0, 1.0);

  CHECK_THAT(Reward(parent, Evaluated(1, 2.0), 4), Catch::Matchers::WithinRel(1.3 * 0.8, 1e-9));
  CHECK_THAT(Reward(parent, Evaluated(1, 1e6), 0), Catch::Matchers::WithinRel(2.3, 1e-9));
  CHECK_THAT(Reward(Evaluated(0, std::nullopt), Evaluated(1, 1.0), 0),
             Catch::Matchers::WithinRel(0.3, 1e-9));
}

}  // namespace mtmc::search

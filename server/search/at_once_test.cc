// SPDX-License-Identifier: Apache-2.0
#include "server/search/at_once.h"

#include <catch2/catch.hpp>

#include "server/search/timed_candidate.h"

namespace mtmc::search {
namespace {

using Texts = std::vector<std::string>;

constexpr char kThree[] =
    "group a template=library nodes=a\n"
    "group b template=library nodes=b\n"
    "group c template=pointwise nodes=c\n";

v1::Action Step(v1::Action::Type type, const std::string& text, const Texts& kernels) {
  v1::Action action;
  action.set_type(type);
  action.set_text(text);
  for (const std::string& kernel : kernels) action.mutable_region()->add_kernels(kernel);
  return action;
}

std::vector<v1::Action> Legal() {
  return {Step(v1::Action::TYPE_TILE, "tile a", {"a"}),
          Step(v1::Action::TYPE_FUSE, "fuse a and b", {"a", "b"}),
          Step(v1::Action::TYPE_TILE, "tile b", {"b"}),
          Step(v1::Action::TYPE_TUNE, "tune c", {"c"}),
          Step(v1::Action::TYPE_VECTORIZE, "vectorize c", {"c"}),
          Step(v1::Action::TYPE_STOP, "stop", {})};
}

// `drawn` of Legal(), all of them in the order of their probability.
MacroStep Draw(size_t drawn) {
  MacroStep step;
  step.action = Legal()[drawn];
  for (const v1::Action& action : Legal()) step.decision.add_choices()->set_action(action.text());
  return step;
}

v1::Candidate Start() {
  return TimedCandidate(0, kThree, {{"aten::mm", 4}, {"aten::mm", 4}, {"c", 1}});
}

Lineage LineageOf(const std::vector<v1::Candidate>& candidates) {
  Lineage lineage;
  for (const v1::Candidate& candidate : candidates) lineage.Put(candidate);
  return lineage;
}

Texts Joined(const Lineage& lineage, size_t drawn) {
  return StepsOf(JoinSteps(lineage, 0, Draw(drawn), Legal()));
}

TEST_CASE("A trial takes the best step of every group with the drawn one", "[search]") {
  const v1::Action joined = JoinSteps(LineageOf({Start()}), 0, Draw(0), Legal());
  CHECK(StepsOf(joined) == Texts{"tile a", "tile b", "vectorize c"});
  CHECK(joined.type() == v1::Action::TYPE_TILE);
  CHECK(joined.text() == "tile a and 2 more steps at once");
  CHECK(joined.region().kernels_size() == 3);
}

TEST_CASE("No group is changed twice in a trial", "[search]") {
  CHECK(Joined(LineageOf({Start()}), 1) == Texts{"fuse a and b", "vectorize c"});
}

TEST_CASE("Sweeps and stops go with nothing", "[search]") {
  CHECK(Joined(LineageOf({Start()}), 3) == Texts{"tune c"});
  CHECK(Joined(LineageOf({Start()}), 5) == Texts{"stop"});
}

TEST_CASE("A step beyond its region goes with nothing", "[search]") {
  std::vector<v1::Action> legal = Legal();
  (*legal[2].mutable_arguments())["scope"] = "plan";
  CHECK(StepsOf(JoinSteps(LineageOf({Start()}), 0, Draw(0), legal)) ==
        Texts{"tile a", "vectorize c"});
}

TEST_CASE("Without times of single kernels a trial takes one step", "[search]") {
  CHECK(Joined(LineageOf({TimedCandidate(0, kThree, {})}), 0) == Texts{"tile a"});
}

TEST_CASE("After steps at once have failed a trial takes one step", "[search]") {
  v1::Candidate failed = TimedCandidate(1, kThree, {});
  *failed.mutable_action() = JoinSteps(LineageOf({Start()}), 0, Draw(0), Legal());
  failed.mutable_evaluation()->set_verdict(v1::Evaluation::VERDICT_WRONG);
  CHECK(Joined(LineageOf({Start(), failed}), 0) == Texts{"tile a"});
}

// Trial 1 took both products, trial 2 is another program with the same group b.
TEST_CASE("A step on groups that stand as they stood is judged", "[search]") {
  v1::Candidate tiled = TimedCandidate(1,
                                       "group a template=contraction nodes=a\n"
                                       "group b template=contraction nodes=b\n"
                                       "group c template=pointwise nodes=c vector=4\n",
                                       {{"a", 3}, {"b", 9}, {"c", 1}});
  *tiled.mutable_action() = JoinSteps(LineageOf({Start()}), 0, Draw(0), Legal());
  const v1::Candidate mixed = TimedCandidate(2,
                                             "group a template=contraction nodes=a\n"
                                             "group b template=library nodes=b\n"
                                             "group c template=pointwise nodes=c\n",
                                             {{"a", 3}, {"aten::mm", 4}, {"c", 1}});
  const Lineage lineage = LineageOf({Start(), tiled, mixed});

  CHECK(IsJudged(lineage, 2, Legal()[2]));
  CHECK_FALSE(IsJudged(lineage, 2, Legal()[0]));
  CHECK_FALSE(IsJudged(lineage, 2, Legal()[1]));
  CHECK_FALSE(IsJudged(lineage, 2, Legal()[3]));
  CHECK(IsJudged(lineage, 0, Legal()[4]));
}

}  // namespace
}  // namespace mtmc::search

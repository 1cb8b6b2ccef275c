// SPDX-License-Identifier: Apache-2.0
#include "server/search/mix.h"

#include <catch2/catch.hpp>

#include "server/search/timed_candidate.h"

namespace mtmc::search {
namespace {

constexpr char kCalls[] =
    "group a template=library nodes=a\n"
    "group relu template=pointwise nodes=relu\n"
    "group b template=library nodes=b\n";
constexpr char kOwn[] =
    "group a template=contraction nodes=a,relu bm=64\n"
    "group b template=contraction nodes=b\n"
    "tune b.bm=64,128\n";

Lineage LineageOf(const std::vector<v1::Candidate>& candidates) {
  Lineage lineage;
  for (const v1::Candidate& candidate : candidates) lineage.Put(candidate);
  return lineage;
}

v1::Candidate Calls() {
  return TimedCandidate(0, kCalls, {{"aten::mm", 4}, {"relu", 2}, {"aten::mm", 4}});
}

std::string MixOf(const Lineage& lineage, int parent) {
  const auto mix = FindMix(lineage, parent);
  return mix ? mix->arguments().at("schedule") : "none";
}

TEST_CASE("A mix has the faster variant of each part", "[search]") {
  // The program as a whole is slower: 3 + 9 after 10.
  const Lineage lineage = LineageOf({Calls(), TimedCandidate(1, kOwn, {{"a", 3}, {"b", 9}})});
  CHECK(MixOf(lineage, 0) ==
        "group b template=library nodes=b\n"
        "group a template=contraction nodes=a,relu bm=64\n");
  CHECK(FindMix(lineage, 0)->type() == v1::Action::TYPE_TUNE);
  CHECK(FindMix(lineage, 0)->text() ==
        "tune by the fastest variant of each part, 1 part changed after trial 1");
}

TEST_CASE("A mix is the same from either program", "[search]") {
  const Lineage lineage = LineageOf({Calls(), TimedCandidate(1, kOwn, {{"a", 3}, {"b", 9}})});
  CHECK(MixOf(lineage, 1) ==
        "group a template=contraction nodes=a,relu bm=64\n"
        "group b template=library nodes=b\n");
}

TEST_CASE("A part keeps its sweeps, under the name that it has in the mix", "[search]") {
  const std::string other =
      "group b template=contraction nodes=a,relu\n"
      "group c template=contraction nodes=b\n"
      "tune b.bm=64,128\n";
  const Lineage lineage = LineageOf({Calls(), TimedCandidate(1, other, {{"b", 3}, {"c", 9}})});
  CHECK(MixOf(lineage, 0) ==
        "group b template=library nodes=b\n"
        "group b_2 template=contraction nodes=a,relu\n"
        "tune b_2.bm=64,128\n");
}

TEST_CASE("Nothing is mixed where one program is fastest everywhere", "[search]") {
  CHECK(MixOf(LineageOf({Calls()}), 0) == "none");
  CHECK(MixOf(LineageOf({Calls(), TimedCandidate(1, kOwn, {{"a", 7}, {"b", 9}})}), 0) == "none");
  // The mix would be what trial 1 is already.
  CHECK(MixOf(LineageOf({Calls(), TimedCandidate(1, kOwn, {{"a", 3}, {"b", 3}})}), 0) == "none");
}

TEST_CASE("A difference within the noise of a kernel is none", "[search]") {
  CHECK(MixOf(LineageOf({Calls(), TimedCandidate(1, kOwn, {{"a", 5.8}, {"b", 9}})}), 0) == "none");
}

TEST_CASE("A mix that was tried is not tried again", "[search]") {
  Lineage lineage = LineageOf({Calls(), TimedCandidate(1, kOwn, {{"a", 3}, {"b", 9}})});
  v1::Candidate mixed;
  mixed.set_trial(2);
  mixed.add_parents("jobs/j/candidates/c0");
  mixed.set_state(v1::Candidate::STATE_REJECTED);
  *mixed.mutable_action() = *FindMix(lineage, 0);
  lineage.Put(mixed);
  CHECK(MixOf(lineage, 0) == "none");
  CHECK(MixOf(lineage, 1) == "none");
}

TEST_CASE("Programs without times of their kernels are not mixed", "[search]") {
  const v1::Candidate bare = TimedCandidate(1, kOwn, {});
  CHECK(MixOf(LineageOf({Calls(), bare}), 0) == "none");
  CHECK(MixOf(LineageOf({Calls(), bare}), 1) == "none");
}

TEST_CASE("Schedules of other nodes are not mixed", "[search]") {
  const std::string other = "group z template=pointwise nodes=z\n";
  CHECK(MixOf(LineageOf({Calls(), TimedCandidate(1, other, {{"z", 1}})}), 0) == "none");
}

}  // namespace
}  // namespace mtmc::search

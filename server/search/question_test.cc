// SPDX-License-Identifier: Apache-2.0
#include "server/search/question.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace mtmc::search {
namespace {

v1::Job MakeJob() {
  v1::Job job;
  job.mutable_search()->set_allow_library(true);
  job.mutable_search()->set_allow_simplify(true);
  return job;
}

v1::ListActionsResponse Listed() {
  v1::ListActionsResponse listed;
  listed.add_actions()->set_type(v1::Action::TYPE_FUSE);
  listed.mutable_actions(0)->set_text("fuse");
  listed.add_actions()->set_type(v1::Action::TYPE_STOP);
  listed.mutable_actions(1)->set_text("stop");
  return listed;
}

v1::Candidate Child(const std::string& action) {
  v1::Candidate candidate;
  candidate.set_trial(1);
  candidate.add_parents("jobs/j/candidates/c0");
  candidate.mutable_action()->set_text(action);
  return candidate;
}

std::vector<std::string> Texts(const Lineage& lineage, const Selection& selection) {
  std::vector<std::string> texts;
  for (const v1::Action& action : LegalActions(MakeJob(), lineage, selection, Listed())) {
    texts.push_back(action.text());
  }
  return texts;
}

Lineage MakeLineage() {
  Lineage lineage;
  lineage.Put(v1::Candidate());
  return lineage;
}

}  // namespace

TEST_CASE("A rollout cannot stop before its first step while something is left to try",
          "[search]") {
  CHECK(Texts(MakeLineage(), {.step = 0}) == std::vector<std::string>{"fuse"});
  CHECK(Texts(MakeLineage(), {.step = 1}) == std::vector<std::string>{"fuse", "stop"});
}

TEST_CASE("To stop is what is left when everything was tried on a program", "[search]") {
  Lineage lineage = MakeLineage();
  lineage.Put(Child("fuse"));

  CHECK(Texts(lineage, {.step = 0}) == std::vector<std::string>{"stop"});
}

// y = x - x
v1::Graph DifferenceGraph() {
  v1::Graph graph;
  v1::TensorType type;
  type.set_data_type(v1::DATA_TYPE_F32);
  type.add_shape(4);
  graph.add_inputs()->set_name("x");
  graph.mutable_inputs(0)->set_kind(v1::GraphInput::KIND_USER_INPUT);
  *graph.mutable_inputs(0)->mutable_type() = type;
  v1::GraphNode& node = *graph.add_nodes();
  node.set_name("sub");
  node.set_op("aten::sub.Tensor");
  for (const char* name : {"self", "other"}) {
    node.add_argument_names(name);
    node.add_arguments()->set_value("x");
  }
  node.add_results("sub");
  *node.add_result_types() = type;
  graph.add_outputs()->set_name("y");
  graph.mutable_outputs(0)->set_kind(v1::GraphOutput::KIND_USER_OUTPUT);
  graph.mutable_outputs(0)->set_value("sub");
  *graph.mutable_outputs(0)->mutable_type() = type;
  return graph;
}

TEST_CASE("A policy sees the graph that a candidate was written from", "[search]") {
  v1::Job job = MakeJob();
  *job.mutable_inspection()->mutable_graph() = DifferenceGraph();
  job.mutable_inspection()->set_contraction_flops(7);
  Lineage lineage = MakeLineage();
  lineage.candidates[0].mutable_evaluation()->mutable_profile()->set_speed_of_light_ratio(0.9);

  const v1::SearchState plain = MakeSearchState(job, lineage, {}, {});
  // The job's own, which is not copied.
  CHECK_FALSE(plain.has_graph());
  CHECK(plain.contraction_flops() == 7);
  CHECK(plain.evaluation().profile().speed_of_light_ratio() == 0.9);

  lineage.candidates[0].set_schedule("rewrite zero_difference node=sub\n");
  const v1::SearchState rewritten = MakeSearchState(job, lineage, {}, {});
  REQUIRE(rewritten.graph().nodes_size() == 1);
  CHECK(rewritten.graph().nodes(0).op() == "aten::full.default");
  CHECK(rewritten.contraction_flops() == 0);
  CHECK(rewritten.evaluation().profile().speed_of_light_ratio() == 0);
}

}  // namespace mtmc::search

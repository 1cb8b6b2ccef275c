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

}  // namespace mtmc::search

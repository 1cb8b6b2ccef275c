// SPDX-License-Identifier: Apache-2.0
#include "server/search/macro_step.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "common/testing/status_matchers.h"
#include "server/search/fingerprint.h"

namespace mtmc::search {
namespace {

using testing::IsOk;
using testing::StatusIs;

v1::ChooseActionRequest MakeRequest() {
  v1::ChooseActionRequest request;
  request.set_seed(3);
  for (const auto type : {v1::Action::TYPE_FUSE, v1::Action::TYPE_TILE, v1::Action::TYPE_STOP}) {
    auto* action = request.add_actions();
    action->set_type(type);
    action->set_text(v1::Action::Type_Name(type));
  }
  return request;
}

v1::ChooseActionResponse MakeAnswer(int chosen, const std::vector<double>& probabilities) {
  v1::ChooseActionResponse answer;
  answer.set_chosen(chosen);
  answer.mutable_probabilities()->Add(probabilities.begin(), probabilities.end());
  answer.set_policy("lm");
  answer.set_model_digest("d");
  return answer;
}

}  // namespace

TEST_CASE("CheckAnswer refuses what a policy must not say", "[search]") {
  struct Case {
    const char* name;
    int chosen;
    std::vector<double> probabilities;
  };

  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Case> cases = {
      {"index below", -1, {0.5, 0.5, 0}},  {"index above", 3, {0.5, 0.5, 0}},
      {"too few", 0, {0.5, 0.5}},          {"sum below 1", 0, {0.2, 0.2, 0.2}},
      {"sum above 1", 0, {0.9, 0.9, 0.9}}, {"not a number", 0, {nan, 0.5, 0.5}},
      {"negative", 0, {1.5, -0.5, 0}},     {"impossible choice", 2, {0.5, 0.5, 0}},
  };

  for (const Case& c : cases) {
    INFO(c.name);
    CHECK_THAT(CheckAnswer(MakeRequest(), MakeAnswer(c.chosen, c.probabilities)),
               StatusIs(absl::StatusCode::kInternal));
  }
  CHECK_THAT(CheckAnswer(MakeRequest(), MakeAnswer(0, {0.5, 0.5, 0})), IsOk());
}

TEST_CASE("FromAnswer records every action, most probable first", "[search]") {
  const MacroStep step = FromAnswer(MakeRequest(), MakeAnswer(0, {0.3, 0.6, 0.1}));

  CHECK(step.action.type() == v1::Action::TYPE_FUSE);
  CHECK(step.decision.policy() == "lm");
  CHECK(step.decision.model_digest() == "d");
  REQUIRE(step.decision.choices_size() == 3);
  CHECK(step.decision.choices(0).action() == "TYPE_TILE");
  CHECK_FALSE(step.decision.is_fallback());
}

TEST_CASE("FallBack decides with the rules and says so", "[search]") {
  const MacroStep step = FallBack(MakeRequest());

  CHECK(step.decision.policy() == "rules");
  CHECK(step.decision.is_fallback());
  CHECK(step.decision.choices_size() == 3);
}

TEST_CASE("FallBack decides even on actions that no rule knows", "[search]") {
  v1::ChooseActionRequest request;
  request.add_actions()->set_text("unheard of");
  request.add_actions()->set_text("as unheard of");

  CHECK(FallBack(request).decision.choices_size() == 2);
}

TEST_CASE("ForkSeed gives each use its own seed, the same each time", "[search]") {
  CHECK(ForkSeed(1, "policy", 2) == ForkSeed(1, "policy", 2));
  CHECK(ForkSeed(1, "policy", 2) != ForkSeed(1, "coder", 2));
  CHECK(ForkSeed(1, "policy", 2) != ForkSeed(2, "policy", 2));
  CHECK(ForkSeed(1, "policy", 2) >= 0);
}

TEST_CASE("EvaluationFingerprint depends on everything a result depends on", "[search]") {
  v1::EvaluationRequest base;
  base.mutable_program()->set_sha256("p");
  v1::DeviceFacts device;
  device.set_product("d");
  const std::string fingerprint = EvaluationFingerprint(base, device);

  std::vector<v1::EvaluationRequest> others(4, base);
  others[0].mutable_program()->set_sha256("q");
  others[1].mutable_problem()->set_seed(1);
  others[2].mutable_options()->set_hidden_seeds(5);
  others[3].add_allowed_calls("aten::mm");
  for (const v1::EvaluationRequest& other : others) {
    CHECK(EvaluationFingerprint(other, device) != fingerprint);
  }
  v1::DeviceFacts other_driver = device;
  other_driver.set_driver_version("2");
  CHECK(EvaluationFingerprint(base, other_driver) != fingerprint);
}

TEST_CASE("EvaluationFingerprint ignores the display name and the physical device", "[search]") {
  v1::EvaluationRequest request, renamed;
  renamed.mutable_problem()->set_display_name("x");
  v1::DeviceFacts device, other;
  other.set_uuid("another one");

  CHECK(EvaluationFingerprint(request, device) == EvaluationFingerprint(renamed, device));
  CHECK(EvaluationFingerprint(request, device) == EvaluationFingerprint(request, other));
}

}  // namespace mtmc::search

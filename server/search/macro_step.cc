// SPDX-License-Identifier: Apache-2.0
#include "server/search/macro_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/digest.h"
#include "policy/rules/distribution.h"
#include "policy/rules/rules_policy.h"
#include "policy/rules/search_state_proto.h"

namespace mtmc::search {
namespace {

// Softmax in single precision over a few hundred actions is within this of 1.
constexpr double kSumTolerance = 1e-3;

std::string TextOf(const v1::Action& action) {
  return action.type() == v1::Action::TYPE_STOP && action.text().empty() ? "stop" : action.text();
}

MacroStep MakeStep(const v1::ChooseActionRequest& request, size_t chosen, std::string policy,
                   const std::vector<double>& probabilities) {
  MacroStep step;
  step.action = request.actions(static_cast<int>(chosen));
  step.decision.set_policy(std::move(policy));
  step.decision.set_seed(request.seed());
  std::vector<int> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return probabilities[static_cast<size_t>(a)] > probabilities[static_cast<size_t>(b)];
  });
  for (const int index : order) {
    auto* choice = step.decision.add_choices();
    choice->set_action(TextOf(request.actions(index)));
    choice->set_probability(probabilities[static_cast<size_t>(index)]);
  }
  return step;
}

}  // namespace

int64_t ForkSeed(int64_t seed, std::string_view use, int64_t index) {
  const std::string name = absl::StrCat(seed, " ", std::string(use), " ", index);
  const std::string digits = base::Sha256(name).sha256_hex.substr(0, 15);
  // 60 bits: positive in every language that reads it.
  return std::stoll(digits, nullptr, 16);
}

absl::Status CheckAnswer(const v1::ChooseActionRequest& request,
                         const v1::ChooseActionResponse& response) {
  const int count = request.actions_size();
  if (response.probabilities_size() != count) {
    return absl::InternalError(absl::StrCat("policy gave ", response.probabilities_size(),
                                            " probabilities for ", count, " actions"));
  }
  double sum = 0;
  for (const double probability : response.probabilities()) {
    if (!(probability >= 0 && probability <= 1 + kSumTolerance)) {
      return absl::InternalError(absl::StrCat("policy gave probability ", probability));
    }
    sum += probability;
  }
  if (std::abs(sum - 1) > kSumTolerance) {
    return absl::InternalError(absl::StrCat("policy gave probabilities that sum to ", sum));
  }
  if (response.chosen() < 0 || response.chosen() >= count ||
      response.probabilities(response.chosen()) <= 0) {
    return absl::InternalError(
        absl::StrCat("policy chose action ", response.chosen(), " of ", count));
  }
  return absl::OkStatus();
}

MacroStep FromAnswer(const v1::ChooseActionRequest& request,
                     const v1::ChooseActionResponse& response) {
  MacroStep step = MakeStep(request, static_cast<size_t>(response.chosen()), response.policy(),
                            {response.probabilities().begin(), response.probabilities().end()});
  step.decision.set_model_digest(response.model_digest());
  return step;
}

MacroStep DrawStep(const v1::ChooseActionRequest& request, const std::string& policy,
                   const std::vector<double>& probabilities) {
  return MakeStep(request, policy::Draw(probabilities, request.seed()), policy, probabilities);
}

MacroStep FallBack(const v1::ChooseActionRequest& request) {
  absl::StatusOr<policy::Query> query = policy::FromProto(request);
  MacroStep step;
  if (query.ok()) {
    const policy::Distribution distribution =
        policy::RulesPolicy::Score(query->search_state, query->actions, query->temperature);
    step = DrawStep(request, "rules", distribution.probabilities);
  } else {
    // An action without a type, from a gateway of another version: no rule
    // knows it, so that all are alike.
    const auto count = static_cast<size_t>(request.actions_size());
    step = DrawStep(request, "rules", std::vector<double>(count, 1.0 / static_cast<double>(count)));
  }
  step.decision.set_is_fallback(true);
  return step;
}

}  // namespace mtmc::search

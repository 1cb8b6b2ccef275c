// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "policy/rules/facts.h"
#include "policy/rules/search_state.h"

namespace mtmc::policy {

// One line of the expert table: an opinion about one action in one state, as a
// preference over stopping. 0 is no opinion, one rule alone seldom exceeds 5.
//
// The score of an action is the sum of all opinions times a constant. `stop`
// is judged by the first rule alone, so its score is mostly 0, and an action of
// negative score is worse than stopping.
struct Rule {
  using Function = double (*)(const Facts&, const Action&, const RegionFacts&);

  std::string_view name;
  // Why an expert thinks so, for `ListPolicies` and the documentation.
  std::string_view reason;
  Function function;
};

// Every rule, in the order in which the sum is built.
std::span<const Rule> RuleTable();

// Score of one action, a log-preference: the scaled sum of all opinions.
double ScoreByRules(const Facts& facts, const Action& action);

}  // namespace mtmc::policy

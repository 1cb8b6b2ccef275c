// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "policy/rules/facts.h"
#include "policy/rules/search_state.h"

namespace mtmc::policy {

// One line of the expert table: an opinion about one action in one state, in
// nats of preference over stopping. 0 is no opinion.
//
// Opinions of all rules are added. `stop` itself is never judged by a rule but
// the first, so its score is near 0, and an action with a negative sum is worse than
// stopping. The scale is meant as an estimate of log-odds: +2.3 is ten times
// as likely as stopping to be the right move, and one rule alone should not
// exceed 5.
struct Rule {
  using Function = double (*)(const Facts&, const Action&, const RegionFacts&);

  std::string_view name;
  // Why an expert thinks so, for `ListPolicies` and the documentation.
  std::string_view reason;
  Function function;
};

// Every rule, in the order in which the sum is built.
std::span<const Rule> RuleTable();

// Sum of all opinions about one action.
double ScoreByRules(const Facts& facts, const Action& action);

}  // namespace mtmc::policy

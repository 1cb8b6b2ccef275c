// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/rules_policy.h"

#include "absl/strings/str_cat.h"
#include "policy/rules/facts.h"
#include "policy/rules/rule_table.h"

namespace mtmc::policy {

Distribution RulesPolicy::Score(const SearchState& search_state, std::span<const Action> actions,
                                double temperature) {
  const Facts facts(search_state);
  Distribution distribution;
  distribution.scores.reserve(actions.size());
  for (const Action& action : actions) distribution.scores.push_back(ScoreByRules(facts, action));
  distribution.probabilities = Softmax(distribution.scores, temperature);
  return distribution;
}

void RulesPolicy::Decide(Query query, Done done) {
  done(Score(query.search_state, query.actions, query.temperature));
}

std::string RulesPolicy::description() const {
  return absl::StrCat("expert table of ", RuleTable().size(), " rules over roofline and history");
}

}  // namespace mtmc::policy

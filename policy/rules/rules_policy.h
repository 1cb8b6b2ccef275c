// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "policy/rules/interface.h"

namespace mtmc::policy {

// The policy without a model: the sum of an expert table (`rule_table.h`) over
// roofline class, graph shape and history. It cannot fail and takes
// microseconds, which makes it the default and everybody's fallback. Stateless.
class RulesPolicy final : public Policy {
 public:
  // Scores and probabilities of the actions; `token_counts` stays empty.
  // REQUIRES: actions is not empty.
  static Distribution Score(const SearchState& search_state, std::span<const Action> actions,
                            double temperature);

  // Calls `done` before it returns, always with a distribution.
  void Decide(Query query, Done done) override;

  std::string name() const override { return "rules"; }

  std::string model_digest() const override { return ""; }

  std::string description() const override;
};

}  // namespace mtmc::policy

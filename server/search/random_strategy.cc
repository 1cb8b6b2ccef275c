// SPDX-License-Identifier: Apache-2.0
#include "server/search/random_strategy.h"

#include "server/search/rollout.h"

namespace mtmc::search {

std::variant<Selection, End> RandomStrategy::Next(const Lineage& lineage) const {
  if (auto end = FindEnd(job_, lineage)) return *end;
  return NextOfRollout(job_, lineage);
}

std::optional<std::vector<double>> RandomStrategy::Distribution(
    const std::vector<v1::Action>& actions) const {
  std::vector<double> weights;
  double total = 0;
  for (const v1::Action& action : actions) {
    // A lone stop is still drawn.
    const bool is_drawn = action.type() != v1::Action::TYPE_STOP || actions.size() == 1;
    total += weights.emplace_back(is_drawn ? 1 : 0);
  }
  for (double& weight : weights) weight /= total;
  return weights;
}

}  // namespace mtmc::search

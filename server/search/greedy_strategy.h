// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/search/strategy.h"

namespace mtmc::search {

// Hill climbing without a model: tries the actions of the best candidate one
// after another in a fixed order of preference, and climbs to whatever is best
// after each; where nothing is left to try, it goes on from the next best. Ends
// when nothing is left anywhere. Actions that were tried on a
// program are not legal again, which the search sees to.
class GreedyStrategy final : public Strategy {
 public:
  explicit GreedyStrategy(v1::Job job) : job_(std::move(job)) {}

  std::string name() const override { return "greedy"; }

  std::variant<Selection, End> Next(const Lineage& lineage) const override;
  std::optional<std::vector<double>> Distribution(
      const std::vector<v1::Action>& actions) const override;

 private:
  const v1::Job job_;
};

}  // namespace mtmc::search

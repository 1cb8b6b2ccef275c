// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/search/strategy.h"

namespace mtmc::search {

// The ablation of the macro policy: the rollouts of `mtmc` with every action
// but `stop` equally likely, so that a difference in results is the policy's.
class RandomStrategy final : public Strategy {
 public:
  explicit RandomStrategy(v1::Job job) : job_(std::move(job)) {}

  std::string name() const override { return "random"; }

  bool joins_steps() const override { return false; }

  std::variant<Selection, End> Next(const Lineage& lineage) const override;
  std::optional<std::vector<double>> Distribution(
      const std::vector<v1::Action>& actions) const override;

 private:
  const v1::Job job_;
};

}  // namespace mtmc::search

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/search/strategy.h"

namespace mtmc::search {

// Macro Thinking / Micro Coding: rollouts of serial refinement in which the
// macro policy chooses every action.
class MtmcStrategy final : public Strategy {
 public:
  explicit MtmcStrategy(v1::Job job) : job_(std::move(job)) {}

  std::string name() const override { return "mtmc"; }

  std::variant<Selection, End> Next(const Lineage& lineage) const override;
  std::optional<std::vector<double>> Distribution(
      const std::vector<v1::Action>& actions) const override;

 private:
  const v1::Job job_;
};

}  // namespace mtmc::search

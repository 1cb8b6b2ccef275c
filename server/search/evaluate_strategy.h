// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/search/strategy.h"

namespace mtmc::search {

// No search: the start candidate is evaluated, and the job ends. For a program
// that someone has written and wants judged.
class EvaluateStrategy final : public Strategy {
 public:
  std::string name() const override { return "evaluate"; }

  std::variant<Selection, End> Next(const Lineage&) const override {
    return End{v1::Job::END_REASON_EVALUATED};
  }

  std::optional<std::vector<double>> Distribution(const std::vector<v1::Action>&) const override {
    return std::nullopt;
  }
};

}  // namespace mtmc::search

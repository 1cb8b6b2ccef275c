// SPDX-License-Identifier: Apache-2.0
#include "server/search/mtmc_strategy.h"

#include "server/search/rollout.h"

namespace mtmc::search {

std::variant<Selection, End> MtmcStrategy::Next(const Lineage& lineage) const {
  if (auto end = FindEnd(job_, lineage)) return *end;
  return NextOfRollout(job_, lineage);
}

std::optional<std::vector<double>> MtmcStrategy::Distribution(
    const std::vector<v1::Action>& /*actions*/) const {
  return std::nullopt;
}

}  // namespace mtmc::search

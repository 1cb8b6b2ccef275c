// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/device_balance.h"

#include <tuple>
#include <utility>

namespace mtmc::coordinator {

const DeviceBalance::Class* DeviceBalance::Choose(const std::map<std::string, Class>& classes) {
  // The largest wins: CUDA, idle workers, and the fewest jobs a worker with this one.
  using Rank = std::tuple<bool, bool, double>;
  const std::pair<const std::string, Class>* best = nullptr;
  Rank best_rank;
  for (const auto& entry : classes) {
    const auto& [name, candidate] = entry;
    const auto chosen = chosen_.find(name);
    const int num_jobs = 1 + (chosen == chosen_.end() ? 0 : chosen->second);
    const Rank rank = {candidate.dialect == v1::DIALECT_CUDA, candidate.num_idle > 0,
                       -static_cast<double>(num_jobs) / candidate.num_workers};
    if (best != nullptr && rank <= best_rank) continue;
    best = &entry;
    best_rank = rank;
  }
  if (best == nullptr) return nullptr;
  ++chosen_[best->first];
  return &best->second;
}

}  // namespace mtmc::coordinator

// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/device_balance.h"

#include <tuple>

#include "common/fleet/device_class.h"

namespace mtmc::coordinator {

const DeviceBalance::Class* DeviceBalance::Choose(const std::vector<Class>& classes) {
  // The largest wins: CUDA, idle workers, and the fewest jobs a worker with this one; of equal
  // ones the first by its text.
  using Rank = std::tuple<bool, bool, double>;
  const Class* best = nullptr;
  Rank best_rank;
  std::string best_name;
  for (const Class& candidate : classes) {
    const std::string name = fleet::DeviceClass(candidate.device);
    const auto chosen = chosen_.find(name);
    const int num_jobs = 1 + (chosen == chosen_.end() ? 0 : chosen->second);
    const Rank rank = {candidate.dialect == v1::DIALECT_CUDA, candidate.num_idle > 0,
                       -static_cast<double>(num_jobs) / candidate.num_workers};
    const bool is_better =
        best == nullptr || rank > best_rank || (rank == best_rank && name < best_name);
    if (!is_better) continue;
    best = &candidate;
    best_rank = rank;
    best_name = name;
  }
  if (best != nullptr) ++chosen_[best_name];
  return best;
}

}  // namespace mtmc::coordinator

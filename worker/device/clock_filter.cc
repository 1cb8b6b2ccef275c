// SPDX-License-Identifier: Apache-2.0
#include "worker/device/clock_filter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mtmc::worker {

double UsualClock(std::span<const double> clocks) {
  std::vector<double> known;
  for (const double clock : clocks) {
    if (clock > 0) known.push_back(clock);
  }
  if (known.empty()) return 0;
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
  std::nth_element(known.begin(), middle, known.end());
  return *middle;
}

std::vector<bool> FindSteadyClocks(std::span<const double> clocks, int min_kept) {
  std::vector<bool> is_kept(clocks.size(), true);
  const double usual = UsualClock(clocks);
  if (usual == 0) return is_kept;
  auto shift = [&](size_t i) { return clocks[i] > 0 ? std::abs(clocks[i] - usual) / usual : 0.0; };
  std::vector<size_t> order(clocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shift(a) < shift(b); });
  for (size_t rank = 0; rank < order.size(); ++rank) {
    is_kept[order[rank]] =
        static_cast<int>(rank) < min_kept || shift(order[rank]) <= kClockToleranceRatio;
  }
  return is_kept;
}

}  // namespace mtmc::worker

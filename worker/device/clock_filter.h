// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace mtmc::worker {

// Clocks that differ by less are one: an H200 moves in steps of 15 MHz (0.8 %).
inline constexpr double kClockToleranceRatio = 0.02;

// The clock of most samples: the median of those that are known, 0 if none is.
double UsualClock(std::span<const double> clocks);

// Which of the samples, parallel to their clocks in hertz, were taken at the clock
// of most of them: within kClockToleranceRatio of UsualClock. Never fewer than
// `min_kept` (or all, if there are fewer): the nearest ones are added, earlier
// ones first. Samples whose clock is unknown (0) are kept.
std::vector<bool> FindSteadyClocks(std::span<const double> clocks, int min_kept);

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"

namespace mtmc::worker {

// Time of the synthetic program as a function of its loops: a straight line.
struct LoopTime {
  double overhead_seconds = 0;
  double seconds_per_loop = 0;

  double SecondsOf(int64_t loops) const {
    return overhead_seconds + seconds_per_loop * static_cast<double>(loops);
  }

  // Nearest number of loops, at least 1.
  int64_t LoopsFor(double seconds) const;
};

// Least-squares line through the points. REQUIRES: as many times as loops, at least two
// different loops.
LoopTime FitLoopTime(std::span<const int64_t> loops, std::span<const double> seconds);

// Cold device time of one execution with so many loops.
using MeasureLoops = std::function<absl::StatusOr<double>(int64_t loops)>;

// Finds the line near `seconds`: first with loops that grow until they take half of
// it, then at points from 97 to 113 % of it, where the line is needed. Where noise
// hides the line there, the first one stands. A time that is shorter than one loop's, by no
// more than a third, stands for that. FAILED_PRECONDITION when the time does not follow the
// loops, or one loop takes too long.
absl::StatusOr<LoopTime> Calibrate(double seconds, const MeasureLoops& measure);

}  // namespace mtmc::worker

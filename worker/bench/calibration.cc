// SPDX-License-Identifier: Apache-2.0
#include "worker/bench/calibration.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

// Where the search begins, how it grows, and where it must end: the loops are an
// `int` in the kernel.
constexpr int64_t kFirstLoops = 256;
constexpr int64_t kGrowth = 4;
constexpr int64_t kMaxLoops = int64_t{1} << 28;

// Where the line is taken in the end, as ratios of the wanted time.
constexpr double kRatios[] = {0.97, 1.00, 1.03, 1.05, 1.10, 1.13};

// How much longer than wanted the shortest loop may take, as a ratio: then it is taken.
constexpr double kMostLonger = 1.5;

// Between neighbours so close, a noisy host shows any slope. One that differs by more
// than this from that of the way there is noise.
constexpr double kMaxBend = 2;

}  // namespace

int64_t LoopTime::LoopsFor(double seconds) const {
  return std::max<int64_t>(1, std::llround((seconds - overhead_seconds) / seconds_per_loop));
}

LoopTime FitLoopTime(std::span<const int64_t> loops, std::span<const double> seconds) {
  MTMC_CHECK(loops.size() == seconds.size() && loops.size() >= 2);
  const auto count = static_cast<double>(loops.size());
  double mean_loops = 0;
  double mean_seconds = 0;
  for (size_t i = 0; i < loops.size(); ++i) {
    mean_loops += static_cast<double>(loops[i]) / count;
    mean_seconds += seconds[i] / count;
  }
  double products = 0;
  double squares = 0;
  for (size_t i = 0; i < loops.size(); ++i) {
    const double x = static_cast<double>(loops[i]) - mean_loops;
    products += x * (seconds[i] - mean_seconds);
    squares += x * x;
  }
  MTMC_CHECK(squares > 0);
  const double slope = products / squares;
  return {.overhead_seconds = mean_seconds - slope * mean_loops, .seconds_per_loop = slope};
}

namespace {

// A first line, through times that are below and near the wanted one; no execution
// on the way is much longer than that.
absl::StatusOr<LoopTime> Approach(double seconds, const MeasureLoops& measure) {
  std::vector<int64_t> loops = {kFirstLoops / kGrowth, kFirstLoops};
  std::vector<double> times;
  for (const int64_t count : loops) {
    MTMC_ASSIGN_OR_RETURN(const double time, measure(count));
    times.push_back(time);
  }
  while (times[1] < seconds / 2 && loops[1] < kMaxLoops) {
    loops = {loops[1], loops[1] * kGrowth};
    MTMC_ASSIGN_OR_RETURN(const double time, measure(loops[1]));
    times = {times[1], time};
  }
  const LoopTime line = FitLoopTime(loops, times);
  if (line.seconds_per_loop > 0) return line;
  return absl::FailedPreconditionError("longer loops do not take longer");
}

}  // namespace

absl::StatusOr<LoopTime> Calibrate(double seconds, const MeasureLoops& measure) {
  MTMC_ASSIGN_OR_RETURN(const LoopTime line, Approach(seconds, measure));
  const double shortest = line.SecondsOf(1) / kRatios[0];
  if (shortest > kMostLonger * seconds) {
    return absl::FailedPreconditionError("one loop takes longer than the wanted time");
  }
  std::vector<int64_t> loops;
  std::vector<double> times;
  for (const double ratio : kRatios) {
    loops.push_back(line.LoopsFor(ratio * std::max(seconds, shortest)));
    MTMC_ASSIGN_OR_RETURN(const double time, measure(loops.back()));
    times.push_back(time);
  }
  if (loops.front() == loops.back()) {
    return absl::FailedPreconditionError("one loop takes as long as the difference");
  }
  const LoopTime near = FitLoopTime(loops, times);
  const double bend = near.seconds_per_loop / line.seconds_per_loop;
  return bend > 1 / kMaxBend && bend < kMaxBend ? near : line;
}

}  // namespace mtmc::worker

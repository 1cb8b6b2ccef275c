// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace mtmc::worker {

// One block of executions of one side.
struct BlockRequest {
  int samples = 1;
  // Executions before the first sample.
  int warmups = 0;
  // Time the yardstick after each sample: a kernel of our own, the same in every process
  // (docs/measurement.md).
  bool with_yardstick = false;
};

// Samples of one block of executions, in seconds.
struct SampleBlock {
  std::vector<double> seconds;
  // Of the yardstick; empty when it was not asked for, or the process has none.
  std::vector<double> yardstick_seconds;
  // Kernels that one execution starts, as far as it is known; at least 1.
  int launches = 1;
  // Number of the process that took them (Reply).
  int64_t process = 0;
  // Dropped because the clock was under its threshold.
  int throttled = 0;
  // Dropped because the clock was another than for the rest.
  int shifted = 0;
  // Dropped because the device began before the host had enqueued everything.
  int late = 0;
  // Median clock of the device over the block; 0 if unknown.
  double clock_hertz = 0;
};

// Everything one side of an interleaved session has measured, one block per turn
// and parallel to the other sides' blocks. A block may be empty. Value type.
struct Series {
  std::vector<SampleBlock> turns;

  // That took the last turn; 0 before there is one.
  int64_t process() const { return turns.empty() ? 0 : turns.back().process; }

  // Kept samples of all turns, in order.
  std::vector<double> Seconds() const;
  // Dropped samples of all turns; `dropped` is one of SampleBlock's counts.
  int Count(int SampleBlock::*dropped) const;
};

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "worker/measure/series.h"

namespace mtmc::worker {

// By how much longer each launch takes in the candidate's process than in the
// baseline's, whatever is launched, in seconds.
struct ProcessOffset {
  double seconds = 0;
  // Half of its 99 % interval.
  double error_seconds = 0;
};

// What the yardstick has told of pairs of processes. An offset stays the same as long as
// both processes live (docs/measurement.md), so what one session learns serves the next:
//
//   session 1    c+y b+y b+y c+y ...          both time the yardstick
//   session 2    c b b c ... c+y b+y ...      known: one turn in eight watches over it
//
// Only the last few hundred turns of a pair count. Thread-compatible.
class ProcessOffsets {
 public:
  // Takes down the yardstick of one turn; nothing where a side did not time it.
  void Add(const SampleBlock& baseline, const SampleBlock& candidate);

  // Of two processes by their numbers. Absent where fewer than 4 turns tell of it, and
  // where it is larger than one of processes ever is.
  std::optional<ProcessOffset> Find(int64_t baseline, int64_t candidate) const;

  // Of the two that took the samples.
  std::optional<ProcessOffset> Find(const Series& baseline, const Series& candidate) const {
    return Find(baseline.process(), candidate.process());
  }

  // Whether more turns would make it little more exact, or there have been as many as count.
  bool IsKnown(int64_t baseline, int64_t candidate) const;

 private:
  // Numbers of the older and the younger process, whichever is the candidate's: it was
  // started earlier, so its number is lower.
  using Pair = std::pair<int64_t, int64_t>;

  static Pair PairOf(int64_t baseline, int64_t candidate);

  // By how much longer the yardstick took in the younger process, turn by turn. The pair of
  // the oldest process comes first, and goes first.
  std::map<Pair, std::vector<double>> differences_;
};

}  // namespace mtmc::worker

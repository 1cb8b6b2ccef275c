// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/shifted_turns.h"

#include <vector>

#include "worker/device/clock_filter.h"
#include "worker/measure/stopping_rule.h"

namespace mtmc::worker {

void DropShiftedTurns(Series& series) {
  std::vector<double> clocks;
  for (const SampleBlock& turn : series.turns) clocks.push_back(turn.clock_hertz);
  const std::vector<bool> is_steady =
      FindSteadyClocks(clocks, NoiseStoppingRule::Options().min_turns);
  for (size_t i = 0; i < series.turns.size(); ++i) {
    if (is_steady[i]) continue;
    SampleBlock& turn = series.turns[i];
    turn.shifted += static_cast<int>(turn.seconds.size());
    turn.seconds.clear();
  }
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/series.h"

namespace mtmc::worker {

std::vector<double> Series::Seconds() const {
  std::vector<double> seconds;
  for (const SampleBlock& turn : turns) {
    seconds.insert(seconds.end(), turn.seconds.begin(), turn.seconds.end());
  }
  return seconds;
}

int Series::Count(int SampleBlock::*dropped) const {
  int count = 0;
  for (const SampleBlock& turn : turns) count += turn.*dropped;
  return count;
}

}  // namespace mtmc::worker

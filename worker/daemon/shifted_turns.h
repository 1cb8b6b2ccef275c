// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/measure/series.h"

namespace mtmc::worker {

// Empties the turns whose clock was another than in most (FindSteadyClocks), and
// counts their samples as shifted, as long as enough turns stay for an interval.
void DropShiftedTurns(Series& series);

}  // namespace mtmc::worker

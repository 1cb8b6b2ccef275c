// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mtmc/v1/candidate.pb.h"

namespace mtmc::search {

// Reward of the transition from `parent` to `child`, made in step `step` of its
// rollout (0 is the first). Milestones from easy to hard, so that rewards grow
// and penalties shrink with how far the child came:
//
//   no program, or it does not build     -1.0
//   it does not run                      -0.6
//   its result is wrong                  -0.3
//   correct but slower than its parent   +0.1
//   correct and as fast                  +0.2
//   correct and faster                   +0.3 + min(2, log2(t_parent / t_child))
//   correct, of an incorrect parent      +0.3
//
// times a decay of 1 - 0.05 * step, which discourages loops. A stop is worth 0:
// better than a failure, worse than an improvement. `docs/search.md` has the
// reasons.
double Reward(const v1::Candidate& parent, const v1::Candidate& child, int step);

}  // namespace mtmc::search

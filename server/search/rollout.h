// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include "mtmc/v1/job.pb.h"
#include "server/search/strategy.h"

namespace mtmc::search {

// Serial refinement: each step acts on the current candidate; the result
// becomes current unless it failed or is slower, and then its parent stays. After a
// known step the older candidate with the same program is current.
// After `max_steps` steps or a stop a new rollout begins, in turn from the best
// and from the start candidate. A candidate on which nothing was left but to
// stop is *exhausted*: no rollout begins with it again, but with the best one
// that is not. The search has no action when all correct candidates are; before
// there is one, when the start candidate is. Replays the whole lineage to find
// where it stands.
std::variant<Selection, End> NextOfRollout(const v1::Job& job, const Lineage& lineage);

}  // namespace mtmc::search

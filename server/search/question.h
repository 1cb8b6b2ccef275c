// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "mtmc/v1/action.pb.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/micro_coding.pb.h"
#include "mtmc/v1/policy.pb.h"
#include "server/search/lineage.h"
#include "server/search/strategy.h"

namespace mtmc::search {

// What is asked of a policy: a search state, and the actions that are legal in
// it. Pure functions of what is recorded.

// The listed actions without those that the job forbids or that were tried on
// the same program: the built-in coder would repeat itself, a language model
// gets a second try. `stop` is among them when nothing else is left, and after
// the first step of a rollout: it ends a rollout, and one without a step would
// only be drawn again.
std::vector<v1::Action> LegalActions(const v1::Job& job, const Lineage& lineage,
                                     const Selection& selection,
                                     const v1::ListActionsResponse& listed);

// The state of the candidate `selection.parent`, whose text is `program`; without a graph unless
// it was rewritten: then that of the job is the caller's to add.
v1::SearchState MakeSearchState(const v1::Job& job, const Lineage& lineage,
                                const Selection& selection, const v1::Program& program);

}  // namespace mtmc::search

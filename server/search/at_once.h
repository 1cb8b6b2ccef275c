// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "mtmc/v1/action.pb.h"
#include "server/search/lineage.h"
#include "server/search/macro_step.h"

namespace mtmc::search {

// Many steps in one trial. A program in which every group wears another variant
// measures a variant of each, where kernels have times of their own (mix.h makes
// use of them).

// Texts of the single steps that an action stands for: itself, unless it was made
// by JoinSteps.
std::vector<std::string> StepsOf(const v1::Action& action);

// Whether `step` is one of them; costs less than to make them.
bool HasStep(const v1::Action& action, const std::string& step);

// Whether the step was measured before, on groups that stand unchanged in
// candidate `parent`: its result is known, whatever the rest of the program.
bool IsJudged(const Lineage& lineage, int parent, const v1::Action& step);

// The drawn action with the most probable step of every other group, in argument
// `steps`. The drawn one alone where kernels of `parent` have no times, where it is
// no step on groups, or where steps at once have failed on the same program.
v1::Action JoinSteps(const Lineage& lineage, int parent, const MacroStep& drawn,
                     const std::vector<v1::Action>& legal);

}  // namespace mtmc::search

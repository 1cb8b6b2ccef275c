// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "mtmc/v1/candidate.pb.h"
#include "server/search/lineage.h"

namespace mtmc::search {

// A *known step*: an action of the built-in coder that leads to a program which the
// job has judged before. It is recorded as a candidate with the known verdict and
// time, and costs no trial. Pure functions of what is recorded.

// The coder whose programs follow from what is recorded: to ask it again costs nothing
// and gives the same text.
inline constexpr char kBuiltinCoder[] = "builtin";

// Whether the evaluation says something of its program; a crash, a time-out or a lack of
// memory may be the host's fault.
bool IsJudgement(const v1::Evaluation& evaluation);

// Trial of the oldest candidate that was judged with the program of this digest.
std::optional<int> FindJudged(const Lineage& lineage, const std::string& program);

// Whether candidate `trial` was made by a known step.
bool IsKnownStep(const Lineage& lineage, int trial);

// Trials of the budget that were begun after candidate `trial`: all steps but known ones.
int TrialsAfter(const Lineage& lineage, int trial);

// Trial of the oldest candidate with the same program and the same schedule: where a
// search goes on after a known step. `trial` itself unless it was made by one.
int OriginalOf(const Lineage& lineage, int trial);

}  // namespace mtmc::search

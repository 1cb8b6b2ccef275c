// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "mtmc/v1/action.pb.h"
#include "server/search/group_times.h"
#include "server/search/lineage.h"

namespace mtmc::search {

// The fastest known variants of all parts of one program.
struct Mix {
  TimedSchedule program;
  // Parts that are not as they were.
  int changed_parts = 0;
  // Device seconds of the fastest program that was measured as it is.
  double fastest_seconds = 0;
};

// What is best of `base` and of every candidate with times.
Mix MixPrograms(const Lineage& lineage, TimedSchedule base);

// The step to a program that has this schedule, whatever its parent: argument `schedule`
// holds it.
v1::Action StepTo(const kernel::Schedule& schedule, const std::string& text);

// Groups do not depend on each other's variants, so that the times of single
// kernels say which program of a job is fastest in which part. The step from
// candidate `parent` to the program with the fastest known variant of every part. Absent unless the
// sum of times promises to be faster than every program with times, and it was not tried. A promise
// only: the program is verified and measured like any other.
std::optional<v1::Action> FindMix(const Lineage& lineage, int parent);

}  // namespace mtmc::search

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "kernel/schedule/schedule.h"
#include "mtmc/v1/candidate.pb.h"

namespace mtmc::search {

// A program of the built-in engine and where its time goes.
struct TimedSchedule {
  kernel::Schedule schedule;
  // Device seconds of each group, parallel to the schedule's.
  std::vector<double> seconds;

  double total_seconds() const;

  // Of some of the groups together.
  double SecondsOf(const std::vector<size_t>& groups) const;
};

// The candidate's groups with their times from its profile, which has an entry
// per launch and call in plan order. Absent unless the candidate is correct, has
// a schedule, and the two tell of the same kernels.
std::optional<TimedSchedule> TimeGroups(const v1::Candidate& candidate);

}  // namespace mtmc::search

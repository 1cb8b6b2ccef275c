// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/action/partition.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::kernel {

// What several steps make of `from`, each on groups of its own. A step is what a
// LegalAction of `from` does. FAILED_PRECONDITION when two change the same group,
// or when their unions would wait for each other.
absl::StatusOr<Schedule> ApplyTogether(const ScheduleContext& context, const Schedule& from,
                                       const std::vector<std::function<Schedule()>>& steps);

}  // namespace mtmc::kernel

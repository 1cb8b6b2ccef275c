// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/action/action_space.h"
#include "kernel/action/partition.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::kernel {

// Whether the device waits for the host between kernels, which a CUDA graph would spare it.
// Where it does not, a graph only keeps the memory of library calls from everybody else.

// Over the whole plan.
bool LaunchesShow(const ScheduleContext& context, const Schedule& schedule);

// At some kernel.
bool SomeLaunchShows(const ScheduleContext& context, const Schedule& schedule);

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/launch_gaps.h"

#include <algorithm>

namespace mtmc::kernel {
namespace {

// Moved by a kernel that takes as long as the host takes for two launches.
constexpr double kBytesThatHideALaunch = 32 << 20;

double BytesOf(const ScheduleContext& context, const KernelGroup& group) {
  return TemplateOf(group).cost(ViewOf(context, group)).bytes;
}

}  // namespace

bool LaunchesShow(const ScheduleContext& context, const Schedule& schedule) {
  double bytes = 0;
  for (const KernelGroup& group : schedule.groups) bytes += BytesOf(context, group);
  return bytes < kBytesThatHideALaunch * static_cast<double>(schedule.groups.size());
}

bool SomeLaunchShows(const ScheduleContext& context, const Schedule& schedule) {
  return std::any_of(schedule.groups.begin(), schedule.groups.end(), [&](const KernelGroup& group) {
    return BytesOf(context, group) < kBytesThatHideALaunch;
  });
}

}  // namespace mtmc::kernel

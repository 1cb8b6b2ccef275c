// SPDX-License-Identifier: Apache-2.0
#include "worker/runner/profile.h"

#include "common/profile/metric_table.h"

namespace mtmc::worker {
namespace {

// The plan knows the launches exactly; of a library call, the device tells those
// of its longest kernel.
void AddLaunch(const PlanRunner& plan, size_t step, const StepActivity& activity,
               v1::KernelActivity& kernel) {
  if (const auto* call = std::get_if<kernel::LibraryCall>(&plan.program().steps[step])) {
    kernel.set_kernel(call->op);
    kernel.set_blocks(activity.blocks);
    kernel.set_threads_per_block(activity.threads_per_block);
    return;
  }
  kernel.set_kernel(std::get<kernel::Launch>(plan.program().steps[step]).kernel);
  const LaunchCommand& command = *plan.FindLaunch(step);
  kernel.set_blocks(command.grid[0] * command.grid[1] * command.grid[2]);
  kernel.set_threads_per_block(
      static_cast<int>(command.block[0] * command.block[1] * command.block[2]));
}

void AddMetrics(const profile::Values& counters,
                google::protobuf::Map<std::string, double>& metrics) {
  for (const auto& [name, value] : profile::Derive(counters)) metrics[name] = value;
}

}  // namespace

v1::Profile MakeProfile(const PlanRunner& plan, const PlanProfile& profile,
                        const std::string& source) {
  v1::Profile proto;
  proto.set_source(source);
  double total = 0;
  for (const StepActivity& activity : profile.activities) total += activity.seconds;
  for (size_t i = 0; i < profile.activities.size(); ++i) {
    const StepActivity& activity = profile.activities[i];
    v1::KernelActivity& kernel = *proto.add_kernels();
    kernel.set_seconds(activity.seconds);
    kernel.set_share_ratio(total > 0 ? activity.seconds / total : 0);
    kernel.set_registers_per_thread(activity.registers_per_thread);
    kernel.set_shared_memory_bytes(activity.shared_memory_bytes);
    kernel.set_local_memory_bytes(activity.local_memory_bytes);
    kernel.set_occupancy_ratio(activity.occupancy_ratio);
    AddLaunch(plan, i, activity, kernel);
    if (i < profile.counters.steps.size()) {
      AddMetrics(profile.counters.steps[i], *kernel.mutable_metrics());
    }
  }
  AddMetrics(profile::Merge(profile.counters.steps), *proto.mutable_metrics());
  proto.set_missing_counters(profile.counters.missing);
  proto.set_passes(profile.counters.passes);
  return proto;
}

}  // namespace mtmc::worker

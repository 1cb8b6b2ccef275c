// SPDX-License-Identifier: Apache-2.0
#include "worker/runner/profile.h"

namespace mtmc::worker {

v1::Profile MakeProfile(const PlanRunner& plan, const std::vector<StepActivity>& activities,
                        const std::string& source) {
  v1::Profile profile;
  profile.set_source(source);
  double total = 0;
  for (const StepActivity& activity : activities) total += activity.seconds;
  for (size_t i = 0; i < activities.size(); ++i) {
    const StepActivity& activity = activities[i];
    v1::KernelActivity& kernel = *profile.add_kernels();
    kernel.set_seconds(activity.seconds);
    kernel.set_share_ratio(total > 0 ? activity.seconds / total : 0);
    kernel.set_registers_per_thread(activity.registers_per_thread);
    kernel.set_shared_memory_bytes(activity.shared_memory_bytes);
    kernel.set_local_memory_bytes(activity.local_memory_bytes);
    const kernel::Step& step = plan.program().steps[i];
    if (const auto* call = std::get_if<kernel::LibraryCall>(&step)) {
      kernel.set_kernel(call->op);
      continue;
    }
    kernel.set_kernel(std::get<kernel::Launch>(step).kernel);
    const LaunchCommand& command = *plan.FindLaunch(i);
    kernel.set_blocks(command.grid[0] * command.grid[1] * command.grid[2]);
    kernel.set_threads_per_block(
        static_cast<int>(command.block[0] * command.block[1] * command.block[2]));
  }
  return profile;
}

}  // namespace mtmc::worker

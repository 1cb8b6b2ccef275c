// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/daemon/device_choice.h"
#include "worker/daemon/worker_process.h"

namespace mtmc::base {
class ShutdownSignal;
}

namespace mtmc::worker {

// Every CUDA device that this process may use, or every OpenCL device on a host
// without an NVIDIA driver. Asks no driver, which would hold a context on each.
// NOT_FOUND when there is none.
absl::StatusOr<std::vector<DeviceChoice>> ListDevices(bool has_nvidia_device);

// The command line of the worker on `device`: the flags, with a name, a scratch
// folder, a port (the first one's, plus the position) and a ready file of its own.
std::vector<std::string> WorkerCommand(const std::string& program, const WorkerFlags& flags,
                                       const DeviceChoice& device, size_t position);

// `mtmc-worker --all-devices`: one worker process per device, so that no device
// waits for another and none takes another down. A worker that dies is started
// again, after a pause that grows while it dies young.
class DeviceSupervisor {
 public:
  struct Options {
    // Path of `mtmc-worker`.
    std::string program;
    std::vector<DeviceChoice> devices;
    // How long the workers may take until they serve, and to finish their leases or give them
    // back.
    absl::Duration start_timeout = absl::Minutes(5);
    absl::Duration stop_timeout = absl::Minutes(5);
  };

  // Borrows the flags.
  DeviceSupervisor(const WorkerFlags& flags, Options options);

  // Starts all, writes the ready file when all serve, and stops all with
  // `shutdown`. The exit code: that of the first worker that did not start.
  int Run(base::ShutdownSignal& shutdown);

 private:
  const WorkerFlags& flags_;
  const Options options_;
};

}  // namespace mtmc::worker

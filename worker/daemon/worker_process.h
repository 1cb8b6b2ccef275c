// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/config/python_environment.h"
#include "common/daemon/flags.h"
#include "common/metrics/metrics.h"
#include "worker/daemon/artifact_cache.h"
#include "worker/daemon/coordinator_client.h"
#include "worker/daemon/device_choice.h"
#include "worker/daemon/work_metrics.h"
#include "worker/daemon/workbench.h"

namespace mtmc::base {
class ShutdownSignal;
}

namespace mtmc::worker {

class LeaseLoop;

// What `mtmc-worker` is told on its command line.
struct WorkerFlags {
  daemon::Flags daemon{.http = "127.0.0.1:9154"};
  std::string coordinator = "127.0.0.1:50151";
  // Empty takes one in the cache folder.
  std::string scratch;
  std::string device = "auto";
  std::string python;
  // Empty takes one from host and device.
  std::string name;
  std::string isolation = "best";
  int num_builders = 0;
  // A duration, how long a worker that is told to end goes on with its lease: below the five
  // minutes that units, chart and containers give it.
  std::string grace = "4m";
  bool is_doctor = false;
  bool has_all_devices = false;
};

// A workbench, and the loop that takes leases for it. Used once.
class WorkerProcess {
 public:
  // Borrows the flags.
  WorkerProcess(const WorkerFlags& flags, config::PythonEnvironment python, DeviceChoice device);

  // Serves until `shutdown`; the exit code.
  int Run(base::ShutdownSignal& shutdown);

 private:
  absl::Status TakeLeases(const std::stop_token& stop);
  bool IsCancelled() const;
  v1::LeaseResult Work(const v1::Lease& lease, const Evaluator::Progress& progress);
  std::string CheckHealth();

  const WorkerFlags& flags_;
  const std::string scratch_;
  base::RealClock clock_;
  metrics::Registry registry_;
  WorkMetrics metrics_;
  const std::unique_ptr<CoordinatorClient> coordinator_;
  ArtifactCache artifacts_;
  // As the coordinator is told; constant while the loop runs.
  v1::Worker worker_;
  // Set while the loop runs; the children are asked from its threads only.
  std::atomic<LeaseLoop*> loop_ = nullptr;
  Workbench bench_;
};

// Of `--grace`; nothing if it is no duration.
std::optional<absl::Duration> ParseGrace(const std::string& text);

// How long the worker takes at most to end.
absl::Duration EndTimeout(const WorkerFlags& flags);

// Last part of a worker's name: what the flags say, or one from host and device.
std::string WorkerIdOf(const WorkerFlags& flags, const DeviceChoice& device);

// The scratch folder of the worker on `device`.
std::string ScratchFolderOf(const WorkerFlags& flags, const DeviceChoice& device);

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/config/python_environment.h"
#include "mtmc/v1/runner.pb.h"
#include "mtmc/v1/worker.pb.h"
#include "worker/builder/client.h"
#include "worker/daemon/device_choice.h"
#include "worker/daemon/evaluator.h"
#include "worker/daemon/shared_folder.h"
#include "worker/reference/client.h"
#include "worker/runner/client.h"

namespace mtmc::worker {

// One device with all that is needed to judge candidates on it: the reference
// process, the builder, the runner, the folder they share, and the evaluator
// that drives them. A worker is a workbench that takes leases; `mtmc-evaluate`
// is one that reads a file.
//
//   Workbench bench({...});
//   MTMC_RETURN_IF_ERROR(bench.Open());
//   bench.evaluator().Evaluate(request, progress);
//
// Thread-compatible. The destructor ends the children.
class Workbench {
 public:
  struct Options {
    config::PythonEnvironment python;
    DeviceChoice device;
    // Folder for caches and logs, of this workbench alone.
    std::string scratch;
    // Resource name written into evaluations; may be empty.
    std::string worker;
    // Local path of a blob.
    Evaluator::Fetch fetch;
    // Asked while a child works; true kills the child.
    std::function<bool()> is_cancelled = [] { return false; };
  };

  explicit Workbench(Options options);

  // Starts the children and opens the device: seconds, because PyTorch is
  // imported and the device's rates are measured. UNAVAILABLE when the device
  // cannot be used, with the reason.
  absl::Status Open();

  // REQUIRES: Open() was OK.
  Evaluator& evaluator() { return *evaluator_; }

  // The device as the runner reported it. REQUIRES: Open() was OK.
  const v1::RunnerResponse::Opened& opened() const { return opened_; }

  // Sets device, isolation, counters and version of a worker's description.
  // REQUIRES: Open() was OK.
  void Describe(v1::Worker& worker) const;

 private:
  const Options options_;
  const SharedFolder shared_;
  base::RealClock clock_;
  ReferenceClient reference_;
  BuilderClient builder_;
  RunnerClient runner_;
  v1::RunnerResponse::Opened opened_;
  // Null before Open().
  std::unique_ptr<Evaluator> evaluator_;
};

// Path of the plug-in for library calls on `device`; empty if it is not installed.
std::string AtenPluginPath(const DeviceChoice& device);

}  // namespace mtmc::worker

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
#include "mtmc/pipe/v1/runner.pb.h"
#include "mtmc/v1/worker.pb.h"
#include "worker/builder/builder_pool.h"
#include "worker/daemon/call_log.h"
#include "worker/daemon/child_rights.h"
#include "worker/daemon/device_choice.h"
#include "worker/daemon/evaluator.h"
#include "worker/daemon/shared_folder.h"
#include "worker/reference/client.h"
#include "worker/reference/module_compiler.h"
#include "worker/runner/client.h"
#include "worker/sandbox/confine.h"

namespace mtmc::worker {

// One device with all that is needed to judge candidates on it: the reference
// process, the builders, the runner, the folder they share, and the evaluator
// that drives them. A worker is a workbench that takes leases; `mtmc-evaluate`
// is one that reads a file.
//
//   Workbench bench({...});
//   MTMC_RETURN_IF_ERROR(bench.Open());
//   bench.evaluator().Evaluate(request, progress);
//
// Thread-compatible but for Prepare. The destructor ends the children.
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
    // The most that keeps the children from the host; less is used where the host
    // allows less.
    IsolationLevel isolation = IsolationLevel::kConfined;
    // Builder processes; 0 takes DefaultBuilders.
    int num_builders = 0;
    // Asked while a child works; true kills the child.
    std::function<bool()> is_cancelled = [] { return false; };
  };

  explicit Workbench(Options options);

  // Starts the children and opens the device: seconds, because PyTorch is
  // imported and the device's rates are measured. A device that cannot be opened
  // from within the isolation is opened at the next lower level, which
  // isolation() then says. UNAVAILABLE when the device cannot be used at all,
  // with the reason.
  absl::Status Open();

  // REQUIRES: Open() was OK.
  Evaluator& evaluator() { return *evaluator_; }

  // Builds the program of `request` ahead of its Evaluate. May run beside all
  // else, on another thread. REQUIRES: Open() was OK.
  void Prepare(const v1::EvaluationRequest& request, const std::function<bool()>& is_cancelled);

  // How many programs are worth building ahead: as many as there are builders, and two, of
  // which one waits for the other, where there is one.
  int most_prefetched() const;

  // The device as the runner reported it. REQUIRES: Open() was OK.
  const pipe::v1::RunnerResponse::Opened& opened() const { return opened_; }

  // Calls of evaluator() to the children.
  CallLog& calls() { return calls_; }

  // What keeps the children from the host.
  const Isolation& isolation() const { return isolation_; }

  // As RunnerClient::CheckHealth, and whether there is room for files. REQUIRES: Open() was OK.
  std::string CheckHealth();

  // Starts what Rest() will need, on the host: seconds of a processor. Not where a processor is
  // the device, which the next candidate may want for itself.
  void PrepareRest();

  // Gives the memory of the device and of the last problem back, all but for a context: both
  // processes that hold it are replaced. What comes next is loaded anew. Between two works of
  // the evaluator. REQUIRES: Open() was OK.
  void Rest();

  // Sets device, isolation, counters and version of a worker's description.
  // REQUIRES: Open() was OK.
  void Describe(v1::Worker& worker) const;

 private:
  absl::Status OpenDevice();
  absl::Status CheckRoom() const;
  std::vector<std::string> InForce() const;
  void Use(const Isolation& isolation);

  const Options options_;
  const SharedFolder shared_;
  const ChildFolders folders_;
  Isolation isolation_;
  // Borrowed by the clients.
  Confinement reference_confinement_;
  Confinement builder_confinement_;
  Confinement runner_confinement_;
  base::RealClock clock_;
  ModuleCompiler module_compiler_;
  ReferenceClient reference_;
  BuilderPool builders_;
  PooledBuilder builder_;
  RunnerClient runner_;
  CallLog calls_;
  // What the evaluator drives.
  LoggedParty<pipe::v1::BuilderRequest, pipe::v1::BuilderResponse> logged_builder_;
  LoggedParty<pipe::v1::RunnerRequest, pipe::v1::RunnerResponse> logged_runner_;
  LoggedParty<pipe::v1::ReferenceRequest, pipe::v1::ReferenceResponse> logged_reference_;
  pipe::v1::RunnerResponse::Opened opened_;
  // Null before Open().
  std::unique_ptr<Evaluator> evaluator_;
};

// Path of the plug-in for library calls on `device`; empty if it is not installed.
std::string AtenPluginPath(const DeviceChoice& device);

}  // namespace mtmc::worker

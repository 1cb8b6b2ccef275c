// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/daemon/device_choice.h"
#include "worker/daemon/runner_sampler.h"
#include "worker/measure/interleaved.h"
#include "worker/runner/client.h"

namespace mtmc::worker {

// A runner process that executes the synthetic program at any length.
//
//   MTMC_RETURN_IF_ERROR(runner.Open(device));
//   MTMC_RETURN_IF_ERROR(runner.Load(text, binary, loops, Role::kCandidate));
//   Sampler sampler = runner.MakeSampler();
//
// Thread-compatible.
class SyntheticRunner {
 public:
  struct Options {
    // Path of `mtmc-runner`.
    std::string program;
    // Private folder.
    std::string scratch;
    ToolPaths tools;
  };

  // A candidate is executed on kept inputs, and a share of its outputs is checked.
  enum class Role { kCandidate, kBaseline };

  explicit SyntheticRunner(const Options& options);

  // Blocks until the device and that of the spare process are open. UNAVAILABLE
  // with the reason.
  absl::StatusOr<v1::DeviceFacts> Open(const DeviceChoice& device);

  // Goes on in a new process, and blocks until the next spare one is open.
  absl::Status Renew();

  // Loads a new copy of the program and executes it. INTERNAL when it fails.
  absl::Status Load(const std::string& text, const std::string& binary, int64_t loops, Role role);

  // Cold samples of what is loaded. Valid until the next Load.
  Sampler MakeSampler();

 private:
  absl::Status WriteInputs();
  // A process that opens a device beside the measurement would disturb it.
  void AwaitSpare();
  absl::StatusOr<pipe::v1::RunnerResponse> Call(const pipe::v1::RunnerRequest& request);

  const Options options_;
  RunnerClient client_;
  std::string inputs_;
  std::vector<int64_t> kept_;
  std::unique_ptr<RunnerSampler> sampler_;
};

}  // namespace mtmc::worker

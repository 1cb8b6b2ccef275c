// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/builder/tool_paths.h"
#include "worker/device/content_cache.h"
#include "worker/device/input_store.h"
#include "worker/device/outbox.h"
#include "worker/device/plan_runner.h"
#include "worker/runner/backend.h"
#include "worker/runner/shared_file.h"

namespace mtmc::worker {

// Answers the daemon's requests on one device. What the candidate does wrong is
// in the response; an error means that the device, or the daemon's request, is
// unusable, and ends the process. Thread-compatible.
class RunnerService {
 public:
  struct Options {
    // Folder for output files that other processes map.
    std::string scratch;
    ToolPaths tools;
  };

  explicit RunnerService(Options options);
  ~RunnerService();

  absl::StatusOr<pipe::v1::RunnerResponse> Answer(const pipe::v1::RunnerRequest& request);

 private:
  absl::Status Open(const pipe::v1::RunnerRequest::Open& open, pipe::v1::RunnerResponse& response);
  void Unload();
  // Whether a request that failed so is worth another try without remembered contents: they
  // had taken the memory, or were not what they should have been, whoever did that.
  bool ForgetContents(const Failure& failure);
  void RunCanary(pipe::v1::RunnerResponse& response);
  MaybeFailure Load(const pipe::v1::RunnerRequest::Load& load, pipe::v1::RunnerResponse& response);
  absl::StatusOr<MaybeFailure> Execute(const pipe::v1::RunnerRequest::Execute& execute,
                                       pipe::v1::RunnerResponse& response);
  // Where the inputs are that the program declares; `mappings` keep files of others open.
  absl::StatusOr<MaybeFailure> FindInputs(const pipe::v1::RunnerRequest::Execute& execute,
                                          std::vector<SharedMapping>& mappings,
                                          InputSources& inputs);
  absl::StatusOr<MaybeFailure> ExecuteOn(const InputSources& inputs,
                                         const pipe::v1::RunnerRequest::Execute& execute,
                                         pipe::v1::RunnerResponse& response);
  MaybeFailure Time(const pipe::v1::RunnerRequest::Time& time, pipe::v1::RunnerResponse& response);
  // Of this process, but not of the program.
  MaybeFailure CheckForeignMemory();
  absl::StatusOr<MaybeFailure> Publish(pipe::v1::RunnerResponse& response);
  // Publish without the checks. REQUIRES: the plan was executed.
  absl::StatusOr<MaybeFailure> ShareOutputs(pipe::v1::RunnerResponse& response);
  MaybeFailure Profile(const pipe::v1::RunnerRequest::Profile& profile,
                       pipe::v1::RunnerResponse& response);
  absl::StatusOr<MaybeFailure> Dispatch(const pipe::v1::RunnerRequest& request,
                                        pipe::v1::RunnerResponse& response);
  absl::Status PublishFile(const std::vector<PlanRunner::Output>& outputs,
                           pipe::v1::RunnerResponse::Outputs& published, MaybeFailure& failure);

  const Options options_;
  // Absent before Open.
  std::unique_ptr<Backend> backend_;
  // Of the program loaded last; the next one of the same evaluation finds them
  // too. Destroyed before the backend.
  std::unique_ptr<InputStore> inputs_;
  // Inputs that programs have in common; only copies that can be made again. Destroyed before
  // the backend.
  std::unique_ptr<ContentCache> contents_;
  // Destroyed before the backend.
  std::unique_ptr<Outbox> outbox_;
  // Absent unless a program is loaded. Destroyed before the backend.
  std::unique_ptr<PlanRunner> plan_;
  int64_t num_published_ = 0;
  // Chooses inputs and checks; a program cannot foresee it.
  std::mt19937_64 random_;
};

}  // namespace mtmc::worker

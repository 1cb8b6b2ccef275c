// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "mtmc/v1/runner.pb.h"
#include "worker/builder/tool_paths.h"
#include "worker/device/plan_runner.h"
#include "worker/runner/backend.h"

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

  absl::StatusOr<v1::RunnerResponse> Answer(const v1::RunnerRequest& request);

 private:
  absl::Status Open(const v1::RunnerRequest::Open& open, v1::RunnerResponse& response);
  void Unload();
  MaybeFailure Load(const v1::RunnerRequest::Load& load);
  absl::StatusOr<MaybeFailure> Execute(const v1::RunnerRequest::Execute& execute,
                                       v1::RunnerResponse& response);
  MaybeFailure Time(const v1::RunnerRequest::Time& time, v1::RunnerResponse& response);
  absl::StatusOr<MaybeFailure> Publish(v1::RunnerResponse& response);
  MaybeFailure Profile(v1::RunnerResponse& response);
  absl::StatusOr<MaybeFailure> Dispatch(const v1::RunnerRequest& request,
                                        v1::RunnerResponse& response);
  absl::Status PublishFile(const std::vector<PlanRunner::Output>& outputs,
                           v1::RunnerResponse::Outputs& published, MaybeFailure& failure);

  const Options options_;
  // Absent before Open.
  std::unique_ptr<Backend> backend_;
  // Absent unless a program is loaded. Destroyed before the backend.
  std::unique_ptr<PlanRunner> plan_;
  int64_t num_published_ = 0;
};

}  // namespace mtmc::worker

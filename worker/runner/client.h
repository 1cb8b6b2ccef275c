// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "worker/builder/child_process.h"
#include "worker/builder/tool_paths.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// The daemon's end of the runner process.
//
//   RunnerClient runner({.program = ..., .scratch = ..., .tools = ...});
//   runner.Call(open, ...);      // kept, and repeated in every new process
//   runner.Call(load, ...);
//
// Starts the process at the first call and again after every death, lost
// context or time-out, and opens the device again; a loaded program is lost
// then, and what needs one is answered with a failure. A spare process waits
// beside it, so that the next one costs only the opening. Thread-compatible.
class RunnerClient final : public RunnerParty {
 public:
  struct Options {
    // Path of `mtmc-runner`.
    std::string program;
    // Private folder for outputs, caches and the process's log.
    std::string scratch;
    ToolPaths tools;
    // Asked every 50 ms while a call waits; true kills the process.
    std::function<bool()> is_cancelled = [] { return false; };
  };

  explicit RunnerClient(Options options);
  ~RunnerClient() override;

  Reply<v1::RunnerResponse> Call(const v1::RunnerRequest& request, absl::Duration timeout) override;

 private:
  // Sets `process_` to an opened one; otherwise `reply` says why not.
  bool EnsureProcess(Reply<v1::RunnerResponse>& reply, absl::Time deadline);
  absl::StatusOr<std::unique_ptr<ChildProcess>> StartProcess();

  const Options options_;
  // Null before the first call and after a death.
  std::unique_ptr<ChildProcess> process_;
  // Started, not opened.
  std::unique_ptr<ChildProcess> spare_;
  // The last Open that succeeded; rates are measured once.
  std::unique_ptr<v1::RunnerRequest> open_;
  int64_t sequence_ = 0;
  int num_started_ = 0;
};

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mtmc/pipe/v1/runner.pb.h"
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
// Beside the process that works, a spare one waits with its device opened:
//
//   start --Open sent--> opening --answer there--> ready --canary--> works
//
// Opening goes on by itself, because nobody waits for its answer. When the
// process that works dies, hangs, or loses its context, the next call takes the
// spare and lets it run the canary; that costs some milliseconds. Another spare is
// started once the next program has been executed, or has failed, or while nobody
// waits: starting and opening it would delay what the device does first. If the
// new spare is needed before it is open, the call waits for the rest of its
// opening; a candidate's deadline starts afterwards. A program that was loaded is
// lost, and what needs one is answered with a failure.
//
// A canary that fails or hangs is repeated in a fresh process. If that fails too,
// calls end as kUnavailable, each after trying again, until a canary passes.
//
// Thread-compatible.
class RunnerClient final : public RunnerParty {
 public:
  struct Options {
    // Path of `mtmc-runner`.
    std::string program;
    // Private folder for outputs and caches.
    std::string scratch;
    ToolPaths tools;
    // The rights of the process, borrowed and read at every start; null: those of
    // the daemon.
    const Confinement* confinement = nullptr;
    // Of one process; 0 is no limit.
    int64_t max_resident_bytes = 0;
    // Thousands of times what a canary takes.
    absl::Duration canary_timeout = absl::Seconds(10);
    // Asked every 50 ms while a call waits; true kills the process.
    std::function<bool()> is_cancelled = [] { return false; };
  };

  // Where the time of a replacement went.
  struct Replacement {
    // Killing the process that ended, and taking its last words. Its own end goes
    // on in the background.
    absl::Duration burial;
    // What was left of the opening of the one that takes its place.
    absl::Duration opening;
    absl::Duration canary;
  };

  explicit RunnerClient(Options options);
  ~RunnerClient() override;

  Reply<pipe::v1::RunnerResponse> Call(const pipe::v1::RunnerRequest& request,
                                       absl::Duration timeout) override;

  // Ends the process that works; what it has loaded is lost. The next call goes to
  // the spare, and a new spare is started.
  void Retire();

  // Changes the roles: the spare works from the next call on, and the process that
  // worked is the spare, with nothing loaded. For a measurement that must not depend on
  // one process. As Retire where there is no spare.
  void Alternate();

  // Ends all processes and starts a spare in their place, which opens the device by
  // itself: nothing that was kept on the device is left. For a pause between programs.
  void Rest();

  // Why the device must not be used; empty when it may. Lets the canary run if a
  // process ended badly since it passed, or if it did not pass. Returns at once
  // otherwise.
  std::string CheckHealth();

  // Whether the next replacement finds an opened process.
  bool has_spare() const;

  // The last one, or zeros.
  const Replacement& last_replacement() const { return last_replacement_; }

 private:
  // A process, and the Open that it has not answered yet.
  struct Runner {
    std::unique_ptr<ChildProcess> process;
    // 0 when there is none.
    int64_t open_sequence = 0;
  };

  using RunnerReply = Reply<pipe::v1::RunnerResponse>;

  RunnerReply Open(const pipe::v1::RunnerRequest& request, absl::Duration timeout);
  RunnerReply Exchange(const pipe::v1::RunnerRequest& request, absl::Duration timeout);
  void EndProcess(const std::string& detail);

  // Sets `process_` to one that is open and healthy; otherwise `reply` says why not.
  bool Replace(RunnerReply& reply);
  bool AwaitOpen(Runner& runner, RunnerReply& reply);
  bool RunCanary(Runner& runner, RunnerReply& reply);
  void Employ(Runner runner);

  absl::StatusOr<Runner> Start();
  void StartSpare();
  void HoldSpare(const pipe::v1::RunnerRequest& request);

  const Options options_;
  // Null before the first call and after a death.
  std::unique_ptr<ChildProcess> process_;
  // Without a process when there is none.
  Runner spare_;
  bool is_spare_held_ = false;
  // Worked before the last Alternate; the spare, once another process works.
  std::unique_ptr<ChildProcess> resting_;
  // The spare was taken and none was started since.
  bool wants_spare_ = false;
  Replacement last_replacement_;
  // The last Open that succeeded; rates are measured once.
  std::unique_ptr<pipe::v1::RunnerRequest> open_;
  int64_t sequence_ = 0;
  // A process ended badly, and no canary has passed since.
  bool needs_canary_ = false;
  // Why the last attempts to replace the process failed.
  std::string fault_;
};

}  // namespace mtmc::worker

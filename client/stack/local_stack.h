// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace mtmc::client {

// The daemons of one machine as child processes on loopback: policy service and
// gateway first, then the coordinator that calls them, then the worker.
//
//   coordinator <- worker        data_dir/mtmc.db, data_dir/artifacts
//     |     |
//   policyd gateway              log_dir/{coordinator,policyd,gateway,worker}.log
//
// A daemon that dies is started again at the same address by Supervise. All end
// with this object, and die with this process if it is killed. Thread-compatible.
class LocalStack {
 public:
  struct Options {
    // Folder of mtmc-coordinator and its siblings.
    std::filesystem::path program_dir;
    std::filesystem::path data_dir;
    std::filesystem::path log_dir;
    // Where the stack says how it is reached; other clients and scripts/monitor read it:
    // {"endpoint": "127.0.0.1:50151", "http": {"mtmc-coordinator": "127.0.0.1:9151", ...}, "pid":
    // 1}
    std::filesystem::path stack_file;
    // Address of the coordinator; port 0 takes a free one.
    std::string listen = "127.0.0.1:0";
    // `auto`, `opencl:0`, `cuda:0`.
    std::string device = "auto";
    // A worker for each device instead; `device` is not used then.
    bool has_all_devices = false;
    // Interpreter with PyTorch; empty probes the usual places.
    std::string python;
    // Folder of a language model for the policy; empty serves `rules` only.
    std::string policy_model;
    // How long one daemon may take until it serves. A worker imports nothing
    // before that, so seconds are plenty; a loaded CI machine is slow.
    absl::Duration start_timeout = absl::Seconds(60);
  };

  // Starts all and waits until they serve. UNAVAILABLE with the end of the log
  // of the daemon that did not.
  static absl::StatusOr<std::unique_ptr<LocalStack>> Start(Options options);

  // Stops the worker first, so that it can report, then the others.
  ~LocalStack();

  // HOST:PORT of the coordinator.
  const std::string& endpoint() const;

  // Metrics addresses by daemon name, for people.
  std::vector<std::pair<std::string, std::string>> http_endpoints() const;

  // Starts again what has died; call about once a second. Names of what was
  // started again, for the user.
  std::vector<std::string> Supervise();

 private:
  class Daemon;

  explicit LocalStack(Options options);
  absl::Status StartAll();

  const Options options_;
  // In the order of starting.
  std::vector<std::unique_ptr<Daemon>> daemons_;
  std::string endpoint_;
};

}  // namespace mtmc::client

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/temp_dir.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/builder/client.h"
#include "worker/runner/client.h"
#include "worker/sandbox/confine.h"

namespace mtmc::fault {

// A real builder and runner on a real device, confined as a worker's are.
class DeviceWard {
 public:
  struct Options {
    v1::Dialect dialect = v1::DIALECT_OPENCL;
    // Opens the plug-in of library calls, too, as a worker does.
    bool has_library = false;
    int64_t max_resident_bytes = 0;
  };

  // Null, and says so, where there is no such device.
  static std::unique_ptr<DeviceWard> Open(const Options& options);

  // A program over x and y, f32[256], whose kernel does `body` with `i` from 0 to
  // 255, with more `directives`. Built once per text.
  void Build(const std::string& body, const std::string& directives = "");

  // Loads and executes what was built last. The load's reply if that went wrong.
  worker::Reply<pipe::v1::RunnerResponse> Run(absl::Duration timeout);
  // Its two halves.
  worker::Reply<pipe::v1::RunnerResponse> Load();
  worker::Reply<pipe::v1::RunnerResponse> Execute(absl::Duration timeout);

  // Blocks until a spare is open.
  bool AwaitSpare();

  worker::RunnerClient& runner() { return *runner_; }

  const std::string& level() const { return level_; }

 private:
  DeviceWard(base::TempDir folder, const Options& options);

  base::TempDir folder_;
  const Options options_;
  std::string level_;
  worker::Confinement builder_confinement_;
  worker::Confinement runner_confinement_;
  std::unique_ptr<worker::BuilderClient> builder_;
  std::unique_ptr<worker::RunnerClient> runner_;
  v1::DeviceFacts device_;
  pipe::v1::RunnerRequest load_;
  pipe::v1::RunnerRequest execute_;
};

// Milliseconds from when a death is known to the first execution of the next program,
// sorted.
struct Recovery {
  std::vector<double> ms;
  // Milliseconds from the launch of the kernel that crashes, or from the deadline of the
  // one that hangs, until that is known, sorted. It is part of the bad program's own
  // evaluation: the driver takes it to tell.
  std::vector<double> until_known_ms;
  // What `ms` are made of, by part, each sorted: the parts of RunnerClient::Replacement,
  // loading, and executing.
  std::map<std::string, std::vector<double>> parts_ms;
  // The same steps in a process that lives: loading and executing.
  double usual_ms = 0;
};

struct BadProgram {
  std::string body;
  // Set for one that hangs.
  absl::Duration deadline = absl::InfiniteDuration();
};

Recovery MeasureRecovery(DeviceWard& ward, const BadProgram& bad, int samples);

// One line of JSON for the log.
std::string ToJson(const std::string& name, const DeviceWard& ward, const Recovery& recovery);

}  // namespace mtmc::fault

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "worker/builder/child_process.h"
#include "worker/builder/tool_paths.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// The daemon's end of the builder process. Starts it at the first call and again
// after every death. Thread-compatible.
class BuilderClient final : public BuilderParty {
 public:
  struct Options {
    // Path of `mtmc-builder`.
    std::string program;
    // Private folder for the compilers' caches and the process's log.
    std::string scratch;
    ToolPaths tools;
    // Variants compiled at a time; 0 means one per core.
    int num_threads = 0;
    // Of the process; 0 is no limit.
    int64_t max_resident_bytes = 0;
    // The rights of the process, borrowed and read at every start; null: those of
    // the daemon.
    const Confinement* confinement = nullptr;
    // Asked every 50 ms while a call waits; true kills the process.
    std::function<bool()> is_cancelled = [] { return false; };
  };

  explicit BuilderClient(Options options);
  ~BuilderClient() override;

  Reply<pipe::v1::BuilderResponse> Call(const pipe::v1::BuilderRequest& request,
                                        absl::Duration timeout) override;

 private:
  const Options options_;
  // Null before the first call and after a death.
  std::unique_ptr<ChildProcess> process_;
  int64_t sequence_ = 0;
};

}  // namespace mtmc::worker

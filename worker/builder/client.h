// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
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
    // The rights of the process; absent: those of the daemon.
    std::optional<Confinement> confinement;
    // Asked every 50 ms while a call waits; true kills the process.
    std::function<bool()> is_cancelled = [] { return false; };
  };

  explicit BuilderClient(Options options);
  ~BuilderClient() override;

  Reply<v1::BuilderResponse> Call(const v1::BuilderRequest& request,
                                  absl::Duration timeout) override;

 private:
  const Options options_;
  // Null before the first call and after a death.
  std::unique_ptr<ChildProcess> process_;
  int64_t sequence_ = 0;
};

}  // namespace mtmc::worker

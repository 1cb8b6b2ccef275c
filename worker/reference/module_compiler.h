// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/base/subprocess.h"

namespace mtmc::worker {

// Has Python compile, once, the modules that a reference process imports, into a folder of the
// worker's: where an installation keeps none, or cannot be written, each process would compile
// them anew. The process that does so has the rights of the daemon and runs no code of a user's;
// reference processes read the folder and never write to it.
//
// Thread-compatible. The destructor ends the process; what it has compiled stays and is of use.
class ModuleCompiler {
 public:
  struct Options {
    // Interpreter that has PyTorch.
    std::string python;
    // Folder that holds the package `mtmc_reference`.
    std::string package_folder;
    // PYTHONPYCACHEPREFIX of those that read it, and there; empty: nothing is compiled.
    std::string folder;
  };

  explicit ModuleCompiler(Options options);

  // Starts to compile, unless that was done before. Failing costs time only: a warning.
  void Start();

  // Waits for the process, if there is one, until `deadline`. Whether modules lie compiled.
  bool Wait(absl::Time deadline);

 private:
  const Options options_;
  // Written last.
  const std::string marker_;
  std::optional<base::Subprocess> process_;
};

}  // namespace mtmc::worker

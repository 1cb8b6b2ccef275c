// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/config/python_environment.h"
#include "worker/sandbox/rights.h"

namespace mtmc::worker {

// What each child of a workbench may reach, besides its working folder.
struct ChildRights {
  Rights reference;
  Rights builder;
  Rights runner;
};

struct ChildFolders {
  // Sources of problems, under their digests.
  std::string artifacts;
  // Tensors that a party shares; each may change its own and read the other's.
  std::string reference;
  std::string runner;
  // Compiled modules of Python; empty: there is none.
  std::string bytecode = {};
};

ChildRights MakeChildRights(const config::PythonEnvironment& python, const ChildFolders& folders,
                            bool has_gpu);

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker/builder/tool_paths.h"
#include "worker/cuda/nvrtc_compiler.h"
#include "worker/device/plan_runner.h"
#include "worker/runner/backend.h"

namespace mtmc::worker {

using Floats = std::vector<float>;

// A program of ours, by its name: in the folder of the environment's MTMC_BIN, as for the
// tests of a bundle, or in that of the build.
std::string ProgramPath(const std::string& name);
// The plug-in of library calls, in the folder beside theirs.
std::string CudaPlugin();

std::span<const std::byte> Bytes(const Floats& values);

// For tests: the GPU in this process, opened once.
class Gpu {
 public:
  // Null where there is none; says so then.
  static Gpu* Find();

  // REQUIRES (of the test): the text parses and compiles.
  Outcome<std::unique_ptr<PlanRunner>> Load(const std::string& text,
                                            std::vector<std::string> allowed = {});

  ToolPaths tools;
  Backend backend;
  std::unique_ptr<NvrtcCompiler> compiler;

 private:
  static std::unique_ptr<Gpu> Open();
};

// An output of the last execution.
Floats OutputOf(PlanRunner& plan, size_t index = 0);

// Of 21 cold samples, in seconds.
double MedianOf(PlanRunner& plan);

}  // namespace mtmc::worker

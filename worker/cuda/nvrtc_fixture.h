// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <iostream>
#include <memory>

#include "common/config/python_environment.h"
#include "worker/cuda/cuda_headers.h"
#include "worker/cuda/nvrtc_compiler.h"

namespace mtmc::worker {

// For tests: the NVRTC of the host's Python. Null, and says so, where there is none.
inline std::unique_ptr<NvrtcCompiler> FindCompiler(int compute_capability = 90,
                                                   bool in_units = false) {
  auto environment = config::PythonEnvironment::Probe();
  if (!environment.ok() || environment->nvrtc_library.empty()) {
    std::cout << "SKIPPED: there is no NVRTC\n";
    return nullptr;
  }
  auto compiler =
      NvrtcCompiler::Create({.library = environment->nvrtc_library,
                             .include_dir = CudaIncludePath(environment->cuda_include_dir),
                             .compute_capability = compute_capability,
                             .in_units = in_units});
  REQUIRE(compiler.ok());
  return *std::move(compiler);
}

}  // namespace mtmc::worker

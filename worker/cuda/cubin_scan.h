// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/program/signature.h"
#include "worker/device/failure.h"

namespace mtmc::worker {

// One kernel of a cubin.
struct CubinKernel {
  std::string name;
  // Of each parameter, in order.
  std::vector<int64_t> parameter_bytes;
};

// One variable that all launches of a module share.
struct CubinVariable {
  std::string name;
  int64_t bytes = 0;
};

// What a compiled CUDA module holds besides instructions.
struct CubinContents {
  std::vector<CubinKernel> kernels;
  // Variables in global memory, tables and strings included.
  std::vector<CubinVariable> variables;
  // Writable memory that belongs to no variable.
  std::vector<std::string> writable_sections;
  // Functions and variables that the module expects from outside.
  std::vector<std::string> undefined;
};

// Reads a cubin, an ELF file, without believing a word of it: any bytes may be
// given. Absent when it is malformed.
std::optional<CubinContents> ReadCubin(std::string_view cubin);

// Why a cubin compiled from `source` by way of `ptx` must not run, as a kCheck
// failure: a variable that survives a launch and that something may write, a function
// that is not in the module (printf, malloc and launches live in the device's
// runtime), or a kernel whose parameters are others than `source` declares, so that a
// launch would read beyond its arguments.
MaybeFailure CheckCubin(std::string_view cubin, std::string_view ptx, std::string_view source);

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/time/time.h"
#include "kernel/program/program.h"
#include "worker/device/failure.h"

namespace mtmc::worker {

// What compiling one variant gave.
struct CompileResult {
  // Cubin or OpenCL device binary; empty on failure.
  std::string binary;
  MaybeFailure failure;
  // At most 64 KiB.
  std::string log;
  absl::Duration duration;
};

// Device source to binary, for one device model. Tune parameters are
// preprocessor constants. Thread-safe.
class Compiler {
 public:
  virtual ~Compiler() = default;
  virtual CompileResult Compile(const std::string& source, const kernel::Bindings& defines) = 0;
};

// Longest log that travels.
inline constexpr size_t kMaxLogBytes = size_t{64} << 10;

}  // namespace mtmc::worker

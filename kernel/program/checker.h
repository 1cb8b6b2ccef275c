// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "kernel/program/parser.h"
#include "kernel/program/program.h"

namespace mtmc::kernel {

// What a program may use.
struct CheckLimits {
  int64_t max_threads_per_block = 1024;
  int64_t max_shared_bytes = int64_t{48} * 1024;
  // All buffers together.
  int64_t max_buffer_bytes = int64_t{64} << 30;
  // Operators a `call` may name, without overload. Empty allows none.
  std::set<std::string, std::less<>> allowed_calls;
  // The worker can run Triton; its kernels' signatures are not checked here.
  bool allows_triton = false;
};

// An input or weight whose values some output is computed from.
struct NeededTensor {
  std::string name;
  // One of the outputs that need it.
  std::string output;
  // Line of the problem that reads it; 0 if unknown.
  int line = 0;
};

// The tensors a program must bind to: those of its problem's graph.
struct ProgramInterface {
  std::vector<Tensor> inputs;   // roles kInput and kWeight
  std::vector<Tensor> outputs;  // role kOutput
  // Those of `inputs` that a program must read.
  std::vector<NeededTensor> needed;
};

// Everything that can be known before the program runs, for one set of tune
// values: known kernels, argument count and types against the kernel signature,
// grid, block and shared-memory limits, tensors that exist with the interface's
// types, every output written, every kernel launched, nothing read before it is
// written, inputs never written, every needed input read on the way to an output,
// calls allowed. Empty means the program is
// sound. Thread-safe.
std::vector<Diagnostic> CheckProgram(const Program& program, const ProgramInterface& interface,
                                     const CheckLimits& limits, const Bindings& bindings);

}  // namespace mtmc::kernel

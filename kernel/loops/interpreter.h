// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/loops/loop.h"

namespace mtmc::kernel {

// A tensor in host memory, every element as a double (exact for integers up to
// 2^53). Row-major.
struct HostTensor {
  TensorType type;
  std::vector<double> values;
};

using HostTensors = std::map<std::string, HostTensor, std::less<>>;

// The meaning of loops, executed one element at a time in double precision: what
// emitted kernels are compared with in tests. Slow by design; for tensors of up
// to some ten thousand elements.
//
// Returns every value of the nest, `inputs` included. UNIMPLEMENTED for an
// opaque loop, INVALID_ARGUMENT when an input is missing or an index leaves its
// tensor.
absl::StatusOr<HostTensors> Interpret(const LoopNest& nest, HostTensors inputs);

}  // namespace mtmc::kernel

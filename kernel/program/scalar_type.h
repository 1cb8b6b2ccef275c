// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "kernel/graph/tensor_type.h"

namespace mtmc::kernel {

// How a type of C, CUDA or OpenCL C represents its values.
struct ScalarType {
  enum class Kind { kBool, kSigned, kUnsigned, kFloating };
  Kind kind = Kind::kSigned;
  int bytes = 4;
  // 1 for a scalar, 4 for `float4`.
  int lanes = 1;
  // Set for floating types: tells f16 from bf16.
  DataType data_type = DataType::kF32;
};

// Absent for a type that is not built in. `type` as in KernelParameter.
std::optional<ScalarType> FindScalarType(std::string_view type);

}  // namespace mtmc::kernel

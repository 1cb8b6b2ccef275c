// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace mtmc::kernel {

// Names of values, tensors, kernels and tune parameters are C identifiers of at
// most this many bytes, so that they can stand in device source unchanged.
inline constexpr int kMaxIdentifierBytes = 200;

// `[A-Za-z_][A-Za-z0-9_]*`, at most kMaxIdentifierBytes.
bool IsIdentifier(std::string_view text);

// PyTorch's name of an operator, such as `aten::sum.dim_IntList`: identifiers, the overload behind
// the point, if there is one.
bool IsOperatorName(std::string_view text);

}  // namespace mtmc::kernel

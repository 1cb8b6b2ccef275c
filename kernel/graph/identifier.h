// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace mtmc::kernel {

// Names of values, tensors, kernels and tune parameters are C identifiers of at
// most this many bytes, so that they can stand in device source unchanged.
inline constexpr int kMaxIdentifierBytes = 200;

// `[A-Za-z_][A-Za-z0-9_]*`, at most kMaxIdentifierBytes.
bool IsIdentifier(std::string_view text);

}  // namespace mtmc::kernel

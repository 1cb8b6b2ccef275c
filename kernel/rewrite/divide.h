// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mtmc::kernel {

// Towards minus infinity; `b` > 0.
inline int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Towards plus infinity; `b` > 0.
inline int64_t CeilDivide(int64_t a, int64_t b) { return -FloorDivide(-a, b); }

}  // namespace mtmc::kernel

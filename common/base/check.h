// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace mtmc::base {

// Prints file, line, text and a stack to standard error, then aborts.
[[noreturn]] void CheckFailed(const char* file, int line, std::string_view text);

}  // namespace mtmc::base

// Aborts with a stack if `condition` is false. For what only a programmer can
// cause; what input, a kernel, a network or a disk can cause is a Status.
#define MTMC_CHECK(condition)                                                     \
  do {                                                                            \
    if (!(condition)) [[unlikely]] {                                              \
      ::mtmc::base::CheckFailed(__FILE__, __LINE__, "check failed: " #condition); \
    }                                                                             \
  } while (false)

// MTMC_CHECK that a build with NDEBUG leaves out; for hot paths.
#ifdef NDEBUG
#define MTMC_DCHECK(condition) static_cast<void>(sizeof(!(condition)))
#else
#define MTMC_DCHECK(condition) MTMC_CHECK(condition)
#endif

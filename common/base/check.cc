// SPDX-License-Identifier: Apache-2.0
#include "common/base/check.h"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "absl/debugging/stacktrace.h"
#include "absl/debugging/symbolize.h"

namespace mtmc::base {

void CheckFailed(const char* file, int line, std::string_view text) {
  std::fprintf(stderr, "%s:%d: %.*s\n", file, line, static_cast<int>(text.size()), text.data());
  std::array<void*, 32> frames{};
  const int depth =
      absl::GetStackTrace(frames.data(), static_cast<int>(frames.size()), /*skip_count=*/1);
  for (int i = 0; i < depth; ++i) {
    std::array<char, 512> name{};
    const bool is_known =
        absl::Symbolize(frames[static_cast<std::size_t>(i)], name.data(), name.size());
    std::fprintf(stderr, "  %p %s\n", frames[static_cast<std::size_t>(i)],
                 is_known ? name.data() : "(unknown)");
  }
  std::fflush(stderr);
  std::abort();
}

}  // namespace mtmc::base

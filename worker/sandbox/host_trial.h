// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "worker/sandbox/isolation.h"

namespace mtmc::worker {

// Tries each mechanism in a process of its own, as the launcher uses it: kernels,
// container runtimes and security modules forbid them in many ways, and only the
// attempt tells. REQUIRES: one thread.
HostSupport TryHost();

// What `mtmc-sandbox --probe` prints:
// `{"landlock_version": 7, "missing": {"namespace.pid": "why"}}`.
std::string ToJson(const HostSupport& support);
absl::StatusOr<HostSupport> ParseHostSupport(std::string_view json);

}  // namespace mtmc::worker

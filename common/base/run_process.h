// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/subprocess.h"

namespace mtmc::base {

// What a process that ran to its end left. A value.
struct CompletedProcess {
  ExitReason exit;
  std::string output;
  std::string error;
};

struct RunLimits {
  absl::Duration timeout = absl::Seconds(30);
  // Kept of each stream; the rest is read and dropped.
  std::size_t max_output_bytes = std::size_t{16} << 20;
};

// Runs a process to its end with `input` on its standard input and collects its
// output and error streams; the streams in `options` are ignored. A failing exit
// code is not an error here. DEADLINE_EXCEEDED after the timeout, with the group
// killed; otherwise fails as Subprocess::Start does.
absl::StatusOr<CompletedProcess> RunProcess(SubprocessOptions options, const RunLimits& limits,
                                            const std::string& input = "");

}  // namespace mtmc::base

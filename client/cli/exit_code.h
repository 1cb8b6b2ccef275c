// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mtmc::client {

// Exit codes of `mtmc`, a stable interface for scripts; `docs/errors.md` lists
// them for people.
enum ExitCode : int {
  kExitOk = 0,
  kExitError = 1,
  // The command line or its input file is at fault.
  kExitUsage = 2,
  // The job failed: no candidate is correct.
  kExitJobFailed = 3,
  // The job ended and nothing is faster than the baseline.
  kExitNoImprovement = 4,
  // The job was cancelled.
  kExitCancelled = 5,
  // No coordinator, worker, device or PyTorch.
  kExitUnavailable = 7,
  // `--timeout` passed while waiting; the job goes on.
  kExitWaitTimeout = 124,
  // Ctrl-C; the job goes on.
  kExitInterrupted = 130,
};

// Exit code for a failed call.
ExitCode ExitCodeOf(const absl::Status& status);

// Prints `status` to standard error in one line, with what to do next where the
// reason is known, and returns its exit code.
ExitCode ReportError(const absl::Status& status);

// The code itself, or that of the error, which is reported.
ExitCode Finish(const absl::StatusOr<ExitCode>& exit_code);

}  // namespace mtmc::client

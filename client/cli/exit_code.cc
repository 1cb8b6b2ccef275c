// SPDX-License-Identifier: Apache-2.0
#include "client/cli/exit_code.h"

#include <iostream>
#include <string>

#include "common/rpc/status.h"

namespace mtmc::client {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
      return kExitUsage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kFailedPrecondition:
      return kExitUnavailable;
    case absl::StatusCode::kDeadlineExceeded:
      return kExitWaitTimeout;
    case absl::StatusCode::kCancelled:
      return kExitInterrupted;
    default:
      return kExitError;
  }
}

ExitCode ReportError(const absl::Status& status) {
  std::cerr << "mtmc: " << status.message();
  const std::string reason = rpc::ErrorReason(status);
  if (!reason.empty()) std::cerr << " [" << reason << "]";
  std::cerr << "\n";
  return ExitCodeOf(status);
}

ExitCode Finish(const absl::StatusOr<ExitCode>& exit_code) {
  return exit_code.ok() ? *exit_code : ReportError(exit_code.status());
}

}  // namespace mtmc::client

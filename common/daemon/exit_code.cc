// SPDX-License-Identifier: Apache-2.0
#include "common/daemon/exit_code.h"

#include <string>

#include "common/base/log.h"
#include "common/base/string_view.h"
#include "common/rpc/error.h"

namespace mtmc::daemon {
namespace {

void LogFailure(std::string_view what, const absl::Status& status) {
  base::Log(base::LogLevel::kError, what,
            {{"code", base::ToStd(absl::StatusCodeToString(status.code()))},
             {"reason", rpc::ErrorReason(status)},
             {"message", base::ToStd(status.message())}});
}

}  // namespace

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kExitOk;
  return absl::IsUnavailable(status) || absl::IsNotFound(status) ? kExitUnavailable : kExitOther;
}

int Fail(std::string_view what, const absl::Status& status) {
  LogFailure(what, status);
  return ExitCodeOf(status);
}

int FailUsage(std::string_view what, const absl::Status& status) {
  LogFailure(what, status);
  return kExitUsage;
}

}  // namespace mtmc::daemon

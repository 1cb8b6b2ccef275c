// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/evaluation_context.h"

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace mtmc::worker {

std::optional<v1::WorkerFailure> RefuseIsolation(v1::Isolation asked,
                                                 const EvaluationContext::Options& options) {
  if (asked <= options.isolation_level) return std::nullopt;
  v1::WorkerFailure refusal;
  refusal.set_reason("ISOLATION_TOO_LOW");
  refusal.set_message(absl::StrCat("the job asks for ", v1::Isolation_Name(asked),
                                   ", this worker has ",
                                   v1::Isolation_Name(options.isolation_level)));
  return refusal;
}

absl::StatusOr<std::string> EvaluationContext::ReadProgram(
    const v1::EvaluationRequest& request) const {
  MTMC_ASSIGN_OR_RETURN(const std::string path, fetch(request.program()));
  return base::ReadFile(path);
}

absl::Duration TimeoutOr(const google::protobuf::Duration& asked, absl::Duration fallback) {
  const absl::Duration value = absl::Seconds(asked.seconds()) + absl::Nanoseconds(asked.nanos());
  return value > absl::ZeroDuration() ? value : fallback;
}

}  // namespace mtmc::worker

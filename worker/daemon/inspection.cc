// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/inspection.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "worker/daemon/session.h"

namespace mtmc::worker {
namespace {

// An interpreter that was killed for something else, such as memory, is not the file's
// fault.
constexpr int kAttempts = 2;

constexpr char kReferenceDied[] = "REFERENCE_DIED";

v1::LeaseResult InspectOnce(const EvaluationContext& context,
                            const v1::InspectionRequest& request) {
  v1::LeaseResult result;
  const auto path = context.fetch(request.problem().source());
  if (!path.ok()) {
    result.mutable_worker_failure()->set_reason("ARTIFACT_UNAVAILABLE");
    result.mutable_worker_failure()->set_message(std::string(path.status().message()));
    return result;
  }
  ReferenceParty& reference = context.parties.reference;
  auto loaded =
      LoadProblem(reference, *path, request.problem(), context.options.torch_device,
                  request.limits(), TimeoutOr(request.limits().trace_timeout(), kLoadTimeout));
  if (!loaded.ok()) {
    *result.mutable_problem_failure() = FailureOfReference(loaded.status());
    return result;
  }
  if (loaded->has_failure()) {
    *result.mutable_problem_failure() = loaded->failure();
    return result;
  }
  v1::Inspection inspection = std::move(*loaded->mutable_loaded()->mutable_inspection());
  auto times = TimeBaselines(reference, request.baselines(), context.clock, kMeasureTimeout);
  if (!times.ok()) {
    *result.mutable_problem_failure() = FailureOfReference(times.status());
    return result;
  }
  inspection.mutable_baselines()->Assign(times->begin(), times->end());
  *result.mutable_inspection() = std::move(inspection);
  return result;
}

}  // namespace

v1::JobFailure FailureOfReference(const absl::Status& status) {
  v1::JobFailure failure;
  if (absl::IsFailedPrecondition(status)) {
    failure.set_reason("BASELINE_FAILED");
    failure.set_message(absl::StrCat("a baseline failed: ", std::string(status.message()),
                                     "; choose another with --baseline"));
    return failure;
  }
  const bool is_late = absl::IsDeadlineExceeded(status);
  failure.set_reason(is_late ? "REFERENCE_TIMEOUT" : kReferenceDied);
  failure.set_message(absl::StrCat("the process that runs the model ",
                                   is_late ? "did not answer in time" : "died",
                                   "; make the model's sizes smaller, or see the diagnostics"));
  failure.set_diagnostics(std::string(status.message()));
  return failure;
}

v1::LeaseResult InspectProblem(const EvaluationContext& context,
                               const v1::InspectionRequest& request) {
  v1::LeaseResult result;
  if (auto refusal = RefuseIsolation(request.min_isolation(), context.options)) {
    *result.mutable_worker_failure() = *std::move(refusal);
    return result;
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    result = InspectOnce(context, request);
    if (result.problem_failure().reason() != kReferenceDied) break;
  }
  return result;
}

}  // namespace mtmc::worker

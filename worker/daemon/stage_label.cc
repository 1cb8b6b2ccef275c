// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/stage_label.h"

#include "common/base/enum_word.h"

namespace mtmc::worker {
std::string StageLabel(v1::Stage stage) { return base::EnumWord(v1::Stage_Name(stage), "STAGE_"); }

std::string OutcomeLabel(const v1::LeaseResult& result) {
  if (result.has_worker_failure()) return "worker_failed";
  if (result.has_problem_failure()) return "problem_failed";
  if (result.has_inspection()) return "inspected";
  if (!result.evaluation().has_failure()) return "correct";
  return base::EnumWord(v1::Failure::Kind_Name(result.evaluation().failure().kind()), "KIND_");
}

double SecondsOf(const v1::StageSpan& span) {
  const int64_t seconds = span.end_time().seconds() - span.start_time().seconds();
  return static_cast<double>(seconds) +
         1e-9 * (span.end_time().nanos() - span.start_time().nanos());
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/evaluator.h"

#include <utility>

#include "worker/daemon/inspection.h"

namespace mtmc::worker {

Evaluator::Evaluator(Parties parties, Fetch fetch, base::Clock& clock, Options options)
    : context_{.parties = parties,
               .fetch = std::move(fetch),
               .clock = clock,
               .options = std::move(options),
               .counter_rule = counter_rule_} {}

v1::LeaseResult Evaluator::Evaluate(const v1::EvaluationRequest& request,
                                    const Progress& progress) {
  return EvaluationRun(context_, request, progress).Execute();
}

v1::LeaseResult Evaluator::Inspect(const v1::InspectionRequest& request, const Progress& progress) {
  progress(v1::STAGE_MEASURE);
  return InspectProblem(context_, request);
}

}  // namespace mtmc::worker

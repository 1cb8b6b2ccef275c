// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/evaluator.h"

#include <utility>

#include "mtmc/v1/builder.pb.h"
#include "worker/daemon/inspection.h"
#include "worker/daemon/program_build.h"

namespace mtmc::worker {

Evaluator::Evaluator(Parties parties, Fetch fetch, base::Clock& clock, Options options)
    : context_{.parties = parties,
               .fetch = std::move(fetch),
               .clock = clock,
               .options = std::move(options),
               .counter_rule = counter_rule_,
               .offsets = offsets_} {}

v1::LeaseResult Evaluator::Evaluate(const v1::EvaluationRequest& request,
                                    const Progress& progress) {
  return EvaluationRun(context_, request, progress).Execute();
}

// What goes wrong here goes wrong again in Evaluate, which reports it.
void Evaluator::Prepare(const v1::EvaluationRequest& request, BuilderParty& builder) const {
  (void)context_.fetch(request.problem().source());
  const auto text = context_.ReadProgram(request);
  if (!text.ok()) return;
  const auto parsed = ParseText(*text);
  const auto* program = std::get_if<kernel::Program>(&parsed);
  if (program == nullptr) return;
  const auto build = BuildRequestOf(*program, *text, request.options(), context_.options);
  builder.Call(build, TimeoutOr(request.options().build_timeout(), kBuildTimeout));
}

v1::LeaseResult Evaluator::Inspect(const v1::InspectionRequest& request, const Progress& progress) {
  progress(v1::STAGE_MEASURE);
  return InspectProblem(context_, request);
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/evaluator.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "worker/daemon/inspection.h"
#include "worker/daemon/program_build.h"

namespace mtmc::worker {
namespace {

// What a process of ours says that found too little memory, else empty: what is missing may
// have been kept for an earlier problem.
std::string LackOfMemory(const v1::LeaseResult& result) {
  auto told = [](const auto& failure) -> std::string {
    const bool is_lack = failure.reason() == "INPUTS_TOO_LARGE" ||
                         absl::StrContains(failure.message(), "out of memory") ||
                         absl::StrContains(failure.message(), "OutOfMemory");
    return is_lack ? absl::StrCat(failure.reason(), ": ", failure.message()) : "";
  };
  const std::string lack = told(result.worker_failure());
  return lack.empty() ? told(result.problem_failure()) : lack;
}

}  // namespace

Evaluator::Evaluator(Parties parties, Fetch fetch, base::Clock& clock, Options options)
    : context_{.parties = parties,
               .fetch = std::move(fetch),
               .clock = clock,
               .options = std::move(options),
               .counter_rule = counter_rule_,
               .offsets = offsets_} {}

v1::LeaseResult Evaluator::Evaluate(const v1::EvaluationRequest& request,
                                    const Progress& progress) {
  return WithRoom(WithMemory([&] { return EvaluationRun(context_, request, progress).Execute(); }));
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
  return WithRoom(WithMemory([&] { return InspectProblem(context_, request); }));
}

// A compiler that cannot write its output, or a reference that dies of it, proves nothing about
// candidate or problem.
v1::LeaseResult Evaluator::WithRoom(v1::LeaseResult result) const {
  const bool is_failed = result.has_worker_failure() || result.has_problem_failure() ||
                         result.evaluation().has_failure();
  if (!is_failed || !context_.options.check_room) return result;
  const absl::Status room = context_.options.check_room();
  if (room.ok()) return result;
  v1::LeaseResult unfit;
  unfit.mutable_worker_failure()->set_reason("DISK_FULL");
  unfit.mutable_worker_failure()->set_message(std::string(room.message()));
  return unfit;
}

v1::LeaseResult Evaluator::WithMemory(const std::function<v1::LeaseResult()>& work) const {
  v1::LeaseResult result = work();
  const std::string lack = LackOfMemory(result);
  if (lack.empty() || !context_.options.give_memory_back) return result;
  base::Log(base::LogLevel::kWarning, "memory ran out, tried again with all of it",
            {{"reason", lack}});
  context_.options.give_memory_back();
  return work();
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "server/search/trial_trace.h"

#include <cstdint>

#include "common/base/enum_word.h"
#include "common/base/log.h"
#include "common/fleet/device_class.h"
#include "server/search/journal.h"

namespace mtmc::search {

void TrialTrace::Begin(int trial) { Start("decision", trial); }

void TrialTrace::BeginConfirmation(int trial) {
  Start("confirmation", trial);
  root_.Set("mtmc.trial", int64_t{trial});
}

void TrialTrace::Start(std::string_view name, int trial) {
  root_ = trace::Span::StartTrace(name);
  root_.Set("mtmc.job", job_);
  trial_ = trial;
  has_name_ = false;
}

void TrialTrace::GoOn(int trial) {
  if (!root_.is_recording() || trial_ != trial) Begin(trial);
}

void TrialTrace::Settle(const v1::Job& job, const Lineage& lineage) {
  if (!root_.is_recording()) return;
  if (lineage.candidates.empty() || lineage.candidates.back().trial() != trial_) return End();
  const v1::Candidate& candidate = lineage.candidates.back();
  if (!has_name_) NameAfter(candidate);
  if (IsFinished(candidate)) Conclude(job, candidate);
}

void TrialTrace::NameAfter(const v1::Candidate& candidate) {
  has_name_ = true;
  root_.Rename("trial");
  root_.Set("mtmc.candidate", candidate.name());
  root_.Set("mtmc.trial", int64_t{candidate.trial()});
}

void TrialTrace::Conclude(const v1::Job& job, const v1::Candidate& candidate) {
  const std::string state = base::EnumWord(v1::Candidate::State_Name(candidate.state()), "STATE_");
  root_.Set("mtmc.state", state);
  root_.Set("mtmc.device.class", fleet::DescribeDeviceClass(job.device()));
  if (candidate.has_evaluation()) {
    const v1::Evaluation& evaluation = candidate.evaluation();
    root_.Set("mtmc.verdict",
              base::EnumWord(v1::Evaluation::Verdict_Name(evaluation.verdict()), "VERDICT_"));
    root_.Set("mtmc.worker", evaluation.worker());
    root_.Set("mtmc.evaluation.is_cached", evaluation.is_cached());
    if (evaluation.has_failure()) {
      root_.Set("mtmc.failure.kind",
                base::EnumWord(v1::Failure::Kind_Name(evaluation.failure().kind()), "KIND_"));
    }
  }
  const base::TraceScope scope(root_.context());
  base::Log(base::LogLevel::kDebug, "trial ended",
            {{"candidate", candidate.name()}, {"state", state}});
  root_.End();
}

const base::TraceContext& TrialTrace::context() const {
  return current_->is_valid() ? *current_ : root_.context();
}

TrialTrace::Step::Step(TrialTrace& trace, std::string_view name, trace::SpanKind kind)
    : current_(trace.current_),
      span_(trace::Span::Start(name, {.kind = kind, .parent = trace.root_.context()})) {
  *current_ = span_.context();
}

}  // namespace mtmc::search

// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/lease_span.h"

#include <cstdint>

#include "common/base/enum_word.h"
#include "common/base/log.h"
#include "common/fleet/device_class.h"
#include "worker/daemon/stage_label.h"

namespace mtmc::worker {

LeaseSpan::LeaseSpan(std::string_view name, trace::SpanKind kind, const v1::Lease& lease,
                     const v1::Worker& worker)
    : span_(trace::Span::Start(
          name,
          {.kind = kind,
           .parent = base::ParseTraceParent(lease.trace_parent()).value_or(base::TraceContext())})),
      scope_(span_.context()) {
  if (!span_.is_recording()) return;
  span_.Set("mtmc.job", lease.job());
  span_.Set("mtmc.candidate", lease.candidate());
  span_.Set("mtmc.worker", worker.name());
  span_.Set("mtmc.device.class", fleet::DescribeDeviceClass(worker.device()));
  span_.Set("mtmc.lease.attempt", int64_t{lease.attempt()});
}

void LeaseSpan::Conclude(const v1::LeaseResult& result) {
  const std::string outcome = OutcomeLabel(result);
  span_.Set("mtmc.outcome", outcome);
  if (result.has_evaluation()) {
    const auto verdict = v1::Evaluation::Verdict_Name(result.evaluation().verdict());
    span_.Set("mtmc.verdict", base::EnumWord(verdict, "VERDICT_"));
  }
  if (result.has_worker_failure()) span_.Fail(result.worker_failure().reason());
  base::Log(base::LogLevel::kDebug, "lease done", {{"outcome", outcome}});
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "common/base/trace_context.h"
#include "common/trace/span.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::worker {

// The span of what is done for a lease, in the trace that the lease names, and the scope of
// its thread: all until the end of its life belongs to it. Inert where the lease names none
// or one that cannot be read.
class LeaseSpan {
 public:
  LeaseSpan(std::string_view name, trace::SpanKind kind, const v1::Lease& lease,
            const v1::Worker& worker);

  // What came of it.
  void Conclude(const v1::LeaseResult& result);

 private:
  trace::Span span_;
  const base::TraceScope scope_;
};

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "server/search/rewritten.h"

#include "absl/strings/match.h"
#include "kernel/graph/graph_proto.h"
#include "kernel/rewrite/rewrite.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::search {

// Rewrites are the first lines of a schedule.
bool IsRewritten(const v1::Candidate& candidate) {
  return absl::StartsWith(candidate.schedule(), "rewrite ");
}

v1::Graph RewrittenGraph(const v1::Graph& graph, const v1::Candidate& candidate) {
  const auto schedule = kernel::ParseSchedule(candidate.schedule());
  const auto original = kernel::FromProto(graph);
  if (!schedule.ok() || !original.ok()) return graph;
  const auto rewritten = kernel::ApplyRewrites(*original, schedule->rewrites);
  return rewritten.ok() ? kernel::ToProto(*rewritten) : graph;
}

}  // namespace mtmc::search

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/graph.pb.h"

namespace mtmc::search {

// Whether the built-in coder changed the graph by algebra before it wrote the candidate: it does
// less than the graph says, and the roofline of the problem is not its own.
bool IsRewritten(const v1::Candidate& candidate);

// The graph that such a candidate was written from, made from that of its job; the job's own
// where it cannot be made.
v1::Graph RewrittenGraph(const v1::Graph& graph, const v1::Candidate& candidate);

}  // namespace mtmc::search

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "mtmc/v1/graph.pb.h"

namespace mtmc::search {

// The graph of a job as several messages have it at once: it may have thousands of nodes, and
// three requests of each trial carry it. Protobuf has no such field, so that a message has to
// let go of the graph before it ends. Private to this folder.
using SharedGraph = std::shared_ptr<const v1::Graph>;

// `holder`, a message with a field `graph`, has `graph` from now on, and only reads it.
// REQUIRES: it has no graph.
template <class Message>
void LendGraph(const SharedGraph& graph, Message& holder) {
  holder.unsafe_arena_set_allocated_graph(const_cast<v1::Graph*>(graph.get()));
}

// Before `holder`, to which it was lent, ends or gets another graph.
template <class Message>
void TakeBackGraph(Message& holder) {
  static_cast<void>(holder.unsafe_arena_release_graph());
}

// `request` with `graph` in the message that `where` finds in it, for as long as the request
// lives, which may be longer than its job. REQUIRES: that message has no graph.
template <class Request, class Where>
std::shared_ptr<const Request> WithGraph(SharedGraph graph, std::unique_ptr<Request> request,
                                         Where where) {
  LendGraph(graph, where(*request));
  return {request.release(), [graph = std::move(graph), where](Request* ended) {
            TakeBackGraph(where(*ended));
            delete ended;
          }};
}

}  // namespace mtmc::search

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/graph/graph.h"

namespace mtmc::kernel {

// Who makes and who reads each value of a graph, found once. The graph must outlive it.
class GraphUses {
 public:
  explicit GraphUses(const Graph& graph);

  const Graph& graph() const { return graph_; }

  // Type of a value. REQUIRES: the graph has it.
  const TensorType& TypeOf(std::string_view value) const;
  // Node that makes a value; null for an input of the graph.
  const GraphNode* ProducerOf(std::string_view value) const;
  // Whether exactly one node reads the value, and no output holds it.
  bool HasOneReader(std::string_view value) const;
  // Whether anybody does.
  bool IsRead(std::string_view value) const;
  // Whether a value or a node has the name.
  bool IsTaken(std::string_view name) const;

 private:
  struct Facts {
    const TensorType* type = nullptr;
    const GraphNode* producer = nullptr;
    std::set<const GraphNode*> readers;
    bool is_output = false;
  };

  const Graph& graph_;
  std::map<std::string, Facts, std::less<>> values_;
  std::set<std::string, std::less<>> nodes_;
};

// What a rewrite changes: nodes to be put before a site, which read what is defined there or
// each other, and values with what the site and later nodes read instead, of the same type.
struct GraphEdit {
  std::vector<GraphNode> nodes;
  std::map<std::string, std::string, std::less<>> instead;
};

// The graph with the edit made before `site`, one of its nodes, and without the nodes whose
// results nobody reads then.
Graph ApplyEdit(const Graph& graph, const GraphNode& site, GraphEdit edit);

}  // namespace mtmc::kernel

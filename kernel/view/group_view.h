// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/graph/graph.h"
#include "kernel/loops/loop.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::kernel {

class SweepPlanMemo;

// The part of a nest that one kernel group computes.
struct GroupView {
  const Graph* graph = nullptr;
  const LoopNest* nest = nullptr;
  const KernelGroup* group = nullptr;
  // Loops of the group's nodes, and of the free movement nodes that they read
  // through, in definition order.
  std::vector<const Loop*> loops;
  // Values read from outside, in order of first use.
  std::vector<std::string> inputs;
  // Values that other groups or the caller read, in definition order.
  std::vector<std::string> outputs;
  // What FindSweepPlan found, for all copies; null for a view made by hand. A copy
  // with other loops or outputs has none.
  std::shared_ptr<SweepPlanMemo> sweep_plans;
};

// Which graph node computes what, and who reads it. Made once per (nest); the
// nest must outlive it. Thread-safe once made.
class NestIndex {
 public:
  NestIndex(const Graph& graph, const LoopNest& nest);

  // Loops of a node in definition order; empty for an unknown node.
  const std::vector<const Loop*>& LoopsOf(std::string_view node) const;
  // Loop that defines a value; null for a graph input.
  const Loop* ProducerOf(std::string_view value) const;
  // Nodes that read a value, in definition order, each once.
  const std::vector<std::string>& ReadersOf(std::string_view value) const;
  // Position of a node in the graph; -1 for an unknown one.
  int PositionOf(std::string_view node) const;
  // True when every loop of the node only moves data and no graph output is
  // its result. Such a node belongs to no group: whoever reads it reads its
  // source instead.
  bool IsFree(std::string_view node) const;
  // True when a graph output holds the value.
  bool IsOutput(std::string_view value) const;

 private:
  struct ValueFacts {
    const Loop* producer = nullptr;
    std::vector<std::string> readers;
    bool is_output = false;
  };

  struct NodeFacts {
    std::vector<const Loop*> loops;
    int position = -1;
    bool is_free = false;
  };

  std::map<std::string, ValueFacts, std::less<>> values_;
  std::map<std::string, NodeFacts, std::less<>> nodes_;
};

// What a group reads of its nodes' arguments: the elements that its loops name,
// or every tensor whole, as a call does.
enum class ArgumentUse { kElements, kWhole };

// The part of the nest that the group computes, with every free node that it
// reads through. The arguments must outlive the view.
GroupView MakeGroupView(const Graph& graph, const LoopNest& nest, const NestIndex& index,
                        const KernelGroup& group, ArgumentUse use = ArgumentUse::kElements);

// Type of a value of the nest.
const TensorType& TypeOf(const GroupView& view, const std::string& value);

// Loop of the view that defines `value`; null when it comes from outside.
const Loop* FindLoop(const GroupView& view, std::string_view value);

// True for a value the group can compute at any element: a map of the view.
bool IsInlineMap(const GroupView& view, std::string_view value);

// `expression` with every read of a map of the view replaced by the map's
// body, until only outside values and non-map values of the view are read.
// Axes keep their meaning; indices are simplified.
ScalarPtr InlineMaps(const GroupView& view, const ScalarPtr& expression,
                     std::span<const int64_t> extents);

// One element that an expression reads, after InlineMaps.
struct ElementRead {
  std::string tensor;
  std::vector<ScalarPtr> indices;
  // Row-major offset of the element, simplified.
  ScalarPtr offset;
  // Evaluated only under a condition, because it may be out of range.
  bool is_guarded = false;
};

// Every distinct element that `expression` reads, in order of evaluation.
std::vector<ElementRead> ElementReads(const GroupView& view, const ScalarPtr& expression,
                                      std::span<const int64_t> extents);

// Rough cost of computing `expression` once, in multiply-adds: 1 for
// arithmetic, 10 for a function such as exp, 1 for an index operation or read.
double CostOf(const ScalarPtr& expression);

}  // namespace mtmc::kernel

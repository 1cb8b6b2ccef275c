// SPDX-License-Identifier: Apache-2.0
#include "kernel/view/group_view.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "kernel/algebra/index_algebra.h"
#include "kernel/algebra/scalar_key.h"
#include "kernel/view/sweep_plan.h"

namespace mtmc::kernel {
namespace {

// Tensors that a loop reads, in order of first use.
std::vector<std::string> TensorsReadBy(const Loop& loop) {
  std::vector<std::string> tensors;
  for (const ScalarPtr& root : {loop.body, loop.lhs, loop.rhs}) {
    if (root == nullptr) continue;
    for (const Scalar* read : Reads(root)) {
      if (std::find(tensors.begin(), tensors.end(), read->tensor) == tensors.end()) {
        tensors.push_back(read->tensor);
      }
    }
  }
  return tensors;
}

void CollectValues(const std::vector<GraphArgument>& arguments, std::vector<std::string>& values) {
  for (const GraphArgument& argument : arguments) {
    if (const auto* value = std::get_if<ValueArgument>(&argument.value)) {
      values.push_back(value->name);
    } else if (const auto* list = std::get_if<std::vector<GraphArgument>>(&argument.value)) {
      CollectValues(*list, values);
    }
  }
}

// Replaces reads of inline maps. Memoized by node and by (value, indices), so that time and
// result stay linear in the number of distinct elements.
class Inliner {
 public:
  Inliner(const GroupView& view, std::span<const int64_t> extents)
      : view_(view), extents_(extents) {}

  ScalarPtr Rewrite(const ScalarPtr& root) {
    if (root->operands.empty() && root->kind != Scalar::Kind::kRead) return root;
    const auto found = done_.find(root.get());
    if (found != done_.end()) return found->second.second;
    ScalarPtr result = RewriteNode(root);
    // The source is kept alive with the result: its address is the key.
    done_.emplace(root.get(), std::make_pair(root, result));
    return result;
  }

 private:
  ScalarPtr RewriteNode(const ScalarPtr& root) {
    bool changed = false;
    std::vector<ScalarPtr> operands;
    for (const ScalarPtr& operand : root->operands) {
      operands.push_back(Rewrite(operand));
      if (root->kind == Scalar::Kind::kRead) {
        operands.back() = SimplifyIndex(operands.back(), extents_);
      }
      changed = changed || operands.back() != operand;
    }
    if (root->kind == Scalar::Kind::kRead && IsInlineMap(view_, root->tensor)) {
      return RewriteRead(root->tensor, operands);
    }
    if (!changed) return root;
    auto copy = std::make_shared<Scalar>(*root);
    copy->operands = std::move(operands);
    return copy;
  }

  ScalarPtr RewriteRead(const std::string& tensor, const std::vector<ScalarPtr>& indices) {
    std::string key = tensor;
    for (const ScalarPtr& index : indices) key += ';' + KeyOf(index);
    const auto found = elements_.find(key);
    if (found != elements_.end()) return found->second;
    const Loop& loop = *FindLoop(view_, tensor);
    ScalarPtr body = Rewrite(SubstituteAxes(loop.body, indices));
    elements_.emplace(std::move(key), body);
    return body;
  }

  const GroupView& view_;
  std::span<const int64_t> extents_;
  std::unordered_map<const Scalar*, std::pair<ScalarPtr, ScalarPtr>> done_;
  std::map<std::string, ScalarPtr> elements_;
};

// Collects the elements that an inlined expression reads. A read inside a
// select's branches counts as guarded when it may be out of range.
class ReadCollector {
 public:
  ReadCollector(const GroupView& view, std::span<const int64_t> extents)
      : view_(view), extents_(extents) {}

  void Visit(const ScalarPtr& root, bool in_branch) {
    if (!visited_[in_branch ? 1 : 0].insert(root.get()).second) return;
    const bool is_select =
        root->kind == Scalar::Kind::kOperator && root->op == Scalar::Operator::kSelect;
    for (size_t i = 0; i < root->operands.size(); ++i) {
      Visit(root->operands[i], in_branch || (is_select && i > 0));
    }
    if (root->kind == Scalar::Kind::kRead) Record(*root, in_branch);
  }

  std::vector<ElementRead> Take() { return std::move(reads_); }

 private:
  void Record(const Scalar& read, bool in_branch) {
    const TensorType& type = view_.nest->types.find(read.tensor)->second;
    ElementRead element{.tensor = read.tensor,
                        .indices = read.operands,
                        .offset = OffsetOf(type, read.operands, extents_)};
    if (in_branch) {
      for (size_t d = 0; d < read.operands.size(); ++d) {
        const IndexRange range = RangeOf(read.operands[d], extents_);
        if (!range.Within(0, type.shape[d] - 1)) element.is_guarded = true;
      }
    }
    const std::string key = element.tensor + ';' + KeyOf(element.offset);
    const auto [position, is_new] = positions_.emplace(key, reads_.size());
    if (is_new) {
      reads_.push_back(std::move(element));
    } else {
      // Read unconditionally somewhere: then the element exists.
      ElementRead& known = reads_[position->second];
      known.is_guarded = known.is_guarded && element.is_guarded;
    }
  }

  const GroupView& view_;
  std::span<const int64_t> extents_;
  std::unordered_set<const Scalar*> visited_[2];
  std::map<std::string, size_t> positions_;
  std::vector<ElementRead> reads_;
};

bool IsExpensive(Scalar::Operator op) {
  switch (op) {
    case Scalar::Operator::kPow:
    case Scalar::Operator::kExp:
    case Scalar::Operator::kExp2:
    case Scalar::Operator::kExpm1:
    case Scalar::Operator::kLog:
    case Scalar::Operator::kLog2:
    case Scalar::Operator::kLog1p:
    case Scalar::Operator::kSin:
    case Scalar::Operator::kCos:
    case Scalar::Operator::kTan:
    case Scalar::Operator::kTanh:
    case Scalar::Operator::kErf:
    case Scalar::Operator::kSigmoid:
      return true;
    default:
      return false;
  }
}

double CostOfNode(const ScalarPtr& root, std::unordered_set<const Scalar*>& visited) {
  if (root->operands.empty() || !visited.insert(root.get()).second) return 0;
  double cost = 1;
  if (root->kind == Scalar::Kind::kOperator && IsExpensive(root->op)) cost = 10;
  for (const ScalarPtr& operand : root->operands) cost += CostOfNode(operand, visited);
  return cost;
}

}  // namespace

NestIndex::NestIndex(const Graph& graph, const LoopNest& nest) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    nodes_[graph.nodes[i].name].position = static_cast<int>(i);
  }
  for (const GraphOutput& output : graph.outputs) values_[output.value].is_output = true;
  const auto add_reader = [this](const std::string& value, const std::string& node) {
    std::vector<std::string>& readers = values_[value].readers;
    if (std::find(readers.begin(), readers.end(), node) == readers.end()) readers.push_back(node);
  };
  for (const Loop& loop : nest.loops) {
    NodeFacts& node = nodes_[loop.node];
    node.loops.push_back(&loop);
    for (const std::string& result : loop.results) values_[result].producer = &loop;
    if (loop.form == Loop::Form::kOpaque) {
      std::vector<std::string> values;
      CollectValues(graph.nodes[static_cast<size_t>(node.position)].arguments, values);
      for (const std::string& value : values) add_reader(value, loop.node);
    } else {
      for (const std::string& value : TensorsReadBy(loop)) add_reader(value, loop.node);
    }
  }
  for (auto& [name, node] : nodes_) {
    node.is_free = !node.loops.empty() &&
                   std::all_of(node.loops.begin(), node.loops.end(), [this](const Loop* loop) {
                     return loop->form == Loop::Form::kMap && loop->is_movement &&
                            !values_[loop->results[0]].is_output;
                   });
  }
}

const std::vector<const Loop*>& NestIndex::LoopsOf(std::string_view node) const {
  static const std::vector<const Loop*>* const none = new std::vector<const Loop*>();
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? *none : found->second.loops;
}

const Loop* NestIndex::ProducerOf(std::string_view value) const {
  const auto found = values_.find(value);
  return found == values_.end() ? nullptr : found->second.producer;
}

const std::vector<std::string>& NestIndex::ReadersOf(std::string_view value) const {
  static const std::vector<std::string>* const none = new std::vector<std::string>();
  const auto found = values_.find(value);
  return found == values_.end() ? *none : found->second.readers;
}

int NestIndex::PositionOf(std::string_view node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? -1 : found->second.position;
}

bool NestIndex::IsFree(std::string_view node) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.is_free;
}

bool NestIndex::IsOutput(std::string_view value) const {
  const auto found = values_.find(value);
  return found != values_.end() && found->second.is_output;
}

namespace {

// Whether a node outside `members` that is not free reads the value, directly
// or through free nodes.
bool IsReadOutside(const NestIndex& index, const std::string& value,
                   const std::set<std::string, std::less<>>& members) {
  for (const std::string& reader : index.ReadersOf(value)) {
    if (members.contains(reader)) continue;
    if (!index.IsFree(reader)) return true;
    for (const Loop* loop : index.LoopsOf(reader)) {
      if (IsReadOutside(index, loop->results[0], members)) return true;
    }
  }
  return false;
}

}  // namespace

GroupView MakeGroupView(const Graph& graph, const LoopNest& nest, const NestIndex& index,
                        const KernelGroup& group, ArgumentUse use) {
  GroupView view{.graph = &graph,
                 .nest = &nest,
                 .group = &group,
                 .sweep_plans = std::make_shared<SweepPlanMemo>()};
  const std::set<std::string, std::less<>> members(group.nodes.begin(), group.nodes.end());
  // Free nodes are found by walking reads backwards from the members.
  std::set<const Loop*> loops;
  std::vector<const Loop*> pending;
  const auto reads_of = [&](const Loop& loop) {
    std::vector<std::string> reads = TensorsReadBy(loop);
    if (loop.form == Loop::Form::kOpaque || use == ArgumentUse::kWhole) {
      const int position = index.PositionOf(loop.node);
      if (members.contains(loop.node)) {
        CollectValues(graph.nodes[static_cast<size_t>(position)].arguments, reads);
      }
    }
    return reads;
  };
  for (const std::string& node : group.nodes) {
    for (const Loop* loop : index.LoopsOf(node)) pending.push_back(loop);
  }
  while (!pending.empty()) {
    const Loop* loop = pending.back();
    pending.pop_back();
    if (!loops.insert(loop).second) continue;
    for (const std::string& value : reads_of(*loop)) {
      const Loop* producer = index.ProducerOf(value);
      if (producer != nullptr && index.IsFree(producer->node)) pending.push_back(producer);
    }
  }
  view.loops.assign(loops.begin(), loops.end());
  // Loops lie in one vector in definition order, so that addresses are in order too.
  std::sort(view.loops.begin(), view.loops.end());

  const auto is_inside = [&](const std::string& value) {
    const Loop* producer = index.ProducerOf(value);
    return producer != nullptr && loops.contains(producer);
  };
  const auto add_input = [&view](const std::string& value) {
    if (std::find(view.inputs.begin(), view.inputs.end(), value) == view.inputs.end()) {
      view.inputs.push_back(value);
    }
  };
  for (const Loop* loop : view.loops) {
    for (const std::string& value : reads_of(*loop)) {
      if (!is_inside(value)) add_input(value);
    }
    if (!members.contains(loop->node)) continue;
    for (const std::string& result : loop->results) {
      if (index.IsOutput(result) || IsReadOutside(index, result, members)) {
        view.outputs.push_back(result);
      }
    }
  }
  return view;
}

const TensorType& TypeOf(const GroupView& view, const std::string& value) {
  return view.nest->types.find(value)->second;
}

const Loop* FindLoop(const GroupView& view, std::string_view value) {
  for (const Loop* loop : view.loops) {
    for (const std::string& result : loop->results) {
      if (result == value) return loop;
    }
  }
  return nullptr;
}

bool IsInlineMap(const GroupView& view, std::string_view value) {
  const Loop* loop = FindLoop(view, value);
  return loop != nullptr && loop->form == Loop::Form::kMap;
}

ScalarPtr InlineMaps(const GroupView& view, const ScalarPtr& expression,
                     std::span<const int64_t> extents) {
  return Inliner(view, extents).Rewrite(expression);
}

std::vector<ElementRead> ElementReads(const GroupView& view, const ScalarPtr& expression,
                                      std::span<const int64_t> extents) {
  // Inlined trees must outlive the collector, which remembers addresses.
  const ScalarPtr inlined = InlineMaps(view, expression, extents);
  ReadCollector collector(view, extents);
  collector.Visit(inlined, /*in_branch=*/false);
  return collector.Take();
}

double CostOf(const ScalarPtr& expression) {
  std::unordered_set<const Scalar*> visited;
  return CostOfNode(expression, visited);
}

}  // namespace mtmc::kernel

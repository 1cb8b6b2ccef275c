// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/graph/graph.h"
#include "kernel/loops/elements.h"
#include "kernel/loops/loop.h"
#include "kernel/loops/scalar.h"

namespace mtmc::kernel {

// Bound of the integers that an argument gives. Above the extents a device can
// hold, and products of two stay within 64 bits.
inline constexpr int64_t kMaxInteger = int64_t{1} << 31;

// One graph node on its way to loops: typed access to its arguments, and the
// loops made so far. An op's lowering reads arguments, defines every result and
// returns true; or returns false, and what it defined is dropped. A node may be
// malformed in every way its Graph allows, so a lowering takes arguments, shapes
// and indices with checked access only and writes no check twice. Made and used
// by LowerToLoops on one thread.
class NodeLowering {
 public:
  NodeLowering(const Graph& graph, const GraphNode& node, LoopNest& nest)
      : graph_(graph), node_(node), nest_(nest) {}

  const GraphNode& node() const { return node_; }

  // Operator without namespace and overload, such as `conv2d`.
  std::string op() const;

  const TensorType& result_type(size_t index = 0) const { return node_.result_types.at(index); }

  size_t result_count() const { return node_.results.size(); }

  // Arguments by schema name. A missing or None argument is absent; a number
  // given in another kind is converted, an integer cut to +-kMaxInteger.
  bool Has(std::string_view name) const;
  std::optional<int64_t> FindInt(std::string_view name) const;
  std::optional<double> FindDouble(std::string_view name) const;
  std::optional<std::vector<int64_t>> FindInts(std::string_view name) const;
  std::string FindText(std::string_view name) const;
  int64_t Int(std::string_view name, int64_t otherwise) const;
  double Double(std::string_view name, double otherwise) const;
  bool Bool(std::string_view name, bool otherwise) const;
  // A list of `count` integers; a list of one is repeated, an absent or empty
  // one is all `otherwise`.
  std::vector<int64_t> Ints(std::string_view name, size_t count, int64_t otherwise) const;
  // A tensor argument; Tensor requires that there is one.
  bool IsTensor(std::string_view name) const;

  Elements Tensor(std::string_view name) const { return FindTensor(name).value(); }

  std::optional<Elements> FindTensor(std::string_view name) const;
  std::vector<Elements> Tensors(std::string_view name) const;
  // A tensor or a number; a number has rank 0 and is never a literal's type.
  std::optional<Elements> FindOperand(std::string_view name) const;

  // Value `name` of the graph, or one defined here, as elements.
  Elements Value(const std::string& name) const;

  // Defines result `index` of the node, cast to its type.
  void Define(const Elements& elements, size_t index = 0);
  // The same for an op that only moves data.
  void DefineMovement(const Elements& elements, size_t index = 0);

  // Adds a reduction of `body` over dimensions `dims` (sorted, non-negative) as
  // value `name`, and returns its first result. With `keep` the reduced dimensions
  // stay with extent 1. A pair combiner also defines `second`.
  struct Reduction {
    Combiner combiner = Combiner::kSum;
    std::vector<int> dims;
    bool keep = false;
    std::string name;
    std::string second = {};
  };

  Elements Reduce(const Elements& body, const Reduction& reduction);
  // A reduction whose element is a function of output indices, then reduction
  // indices, for windows. `output` is the result's type.
  Elements ReduceWindow(const TensorType& output, const std::vector<int64_t>& window,
                        const std::function<ScalarPtr(const std::vector<ScalarPtr>& axes)>& body,
                        const Reduction& reduction);
  // Sum of lhs * rhs over `extents`, the axes after the output's.
  Elements Contract(const TensorType& output, const std::vector<int64_t>& extents,
                    const ScalarPtr& lhs, const ScalarPtr& rhs, const std::string& name);
  // Inclusive running combination along `dim`.
  Elements Scan(const Elements& body, Combiner combiner, int dim, const std::string& name);
  // Adds a map as value `name`, to be read more than once.
  Elements Materialize(const Elements& elements, const std::string& name);

  // Name of the node's only or first result.
  const std::string& result() const { return node_.results.at(0); }

  // A new value name that starts with the node's.
  std::string NameOf(std::string_view suffix) const;

  // Non-negative form of a dimension argument, which is required to name one of
  // `rank`, or 0 of a scalar.
  static int Dimension(int64_t dim, int rank);
  // Sorted non-negative dimensions of a list argument; all when it is absent or
  // empty. Requires that none stands twice.
  std::vector<int> Dimensions(std::string_view name, int rank) const;

 private:
  void AddLoop(Loop loop);
  void AddMap(const Elements& elements, const std::string& name, const TensorType& type,
              bool is_movement);

  const Graph& graph_;
  const GraphNode& node_;
  LoopNest& nest_;
};

}  // namespace mtmc::kernel

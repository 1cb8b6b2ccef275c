// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/graph/graph.h"
#include "kernel/loops/scalar.h"

namespace mtmc::kernel {

// How elements are combined along the reduction axes. A combiner with two
// results keeps a pair.
enum class Combiner {
  kSum,
  kProduct,
  kMax,
  kMin,
  kAny,
  kAll,
  kArgMax,         // results: value, index of its first occurrence (row-major over reduction axes)
  kArgMin,         // the same for the smallest
  kWelford,        // results: mean, sum of squared deviations (Chan et al. 1983 to merge)
  kOnlineSoftmax,  // results: max, sum of exp(x - max) (Milakov and Gimelshein, arXiv 1805.02867)
};

// One operation as `out[i] = f(in[map(i)])`. A graph node becomes one loop or a
// short sequence of them; views are maps whose body is one read.
struct Loop {
  enum class Form {
    kMap,       // result[axes] = body
    kReduce,    // result[output axes] = combiner over reduction axes of body
    kContract,  // result[output axes] = sum over reduction axes of lhs * rhs
    kScan,      // inclusive running combiner along `scan_axis` of body
    kOpaque,    // no loop form; only a library call computes it
  };
  Form form = Form::kMap;
  // Values it defines: one, or two for a pair combiner, or all results of an
  // opaque node. C identifiers, unique in the graph.
  std::vector<std::string> results;
  std::vector<TensorType> types;
  // Graph node it comes from.
  std::string node;
  // Iteration space: one axis per dimension of the result, outermost first,
  // then the reduction axes.
  std::vector<int64_t> extents;
  int reduction_axes = 0;
  Combiner combiner = Combiner::kSum;
  int scan_axis = 0;
  // Element as a function of the axes. Out-of-range reads are guarded by
  // kSelect inside.
  ScalarPtr body;
  // Factors of a contraction.
  ScalarPtr lhs;
  ScalarPtr rhs;
  // True when it only moves data: a view, slice, broadcast, pad or concat.
  bool is_movement = false;

  int output_axes() const { return static_cast<int>(extents.size()) - reduction_axes; }
};

// A graph as loops: definition order, every value defined once.
struct LoopNest {
  std::vector<Loop> loops;
  // Type of every value: graph inputs, node results, and intermediate results
  // that lowering introduced (`softmax_max`).
  std::map<std::string, TensorType, std::less<>> types;

  // Loop that defines `value`; null for a graph input.
  const Loop* FindProducer(std::string_view value) const;
  // Loops of one graph node, in order.
  std::vector<const Loop*> OfNode(std::string_view node) const;
};

// Rewrites every node as loops; a node it has no form for becomes kOpaque, and so
// does one whose arguments, shapes or sizes do not fit its operator. What it gives
// is sound (loop_check.h). INVALID_ARGUMENT only when the graph breaks its own
// invariants.
absl::StatusOr<LoopNest> LowerToLoops(const Graph& graph);

// One loop per line, for people and golden tests.
std::string ToText(const LoopNest& nest);

}  // namespace mtmc::kernel

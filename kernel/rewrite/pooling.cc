// SPDX-License-Identifier: Apache-2.0
#include "kernel/rewrite/pooling.h"

#include <algorithm>
#include <utility>

#include "kernel/loops/elements.h"
#include "kernel/rewrite/node_arguments.h"

namespace mtmc::kernel {
namespace {

size_t At(int axis) { return static_cast<size_t>(axis); }

// `sum` and `mean` over whole axes.
std::optional<Pooling> FindReduction(const GraphNode& node, const TensorType& input) {
  const std::string_view op = OperatorOf(node);
  if (op != "sum" && op != "mean") return std::nullopt;
  const auto axes = FindAxes(node, "dim", static_cast<int>(input.shape.size()));
  if (!axes || HasArgument(node, "dtype")) return std::nullopt;
  Pooling pooling = Pooling::Plain(input.shape, op == "mean");
  for (const int axis : *axes) {
    pooling.axes.at(At(axis)) = {.window = input.shape.at(At(axis)), .step = 1, .outputs = 1};
  }
  return pooling;
}

// Average pooling over the last axes; adaptive pooling where all its windows are alike.
std::optional<Pooling> FindAveragePool(const GraphNode& node, const TensorType& input) {
  std::string_view op = OperatorOf(node);
  const bool is_adaptive = op.starts_with("adaptive_");
  if (is_adaptive) op.remove_prefix(std::string_view("adaptive_").size());
  if (!op.starts_with("avg_pool") || op.size() != 10) return std::nullopt;
  const auto dims = static_cast<size_t>(op.at(8) - '0');
  if (dims < 1 || dims > 3 || input.shape.size() < dims) return std::nullopt;
  const size_t first = input.shape.size() - dims;
  Pooling pooling = Pooling::Plain(input.shape, /*is_mean=*/true);
  if (is_adaptive) {
    const auto outputs = FindInts(node, "output_size", dims, 0);
    if (!outputs) return std::nullopt;
    for (size_t d = 0; d < dims; ++d) {
      const int64_t count = (*outputs).at(d);
      const int64_t extent = input.shape.at(first + d);
      if (count < 1 || extent % count != 0) return std::nullopt;
      pooling.axes.at(first + d) = {extent / count, extent / count, count};
    }
    return pooling;
  }
  const auto window = FindInts(node, "kernel_size", dims, 1);
  if (!window) return std::nullopt;
  const bool has_stride = FindInts(node, "stride", dims, 0) != std::vector<int64_t>(dims, 0);
  const auto step = has_stride ? FindInts(node, "stride", dims, 1) : window;
  const auto padding = FindInts(node, "padding", dims, 0);
  if (!step || padding != std::vector<int64_t>(dims, 0)) return std::nullopt;
  if (IsTrue(node, "ceil_mode") || HasArgument(node, "divisor_override")) return std::nullopt;
  for (size_t d = 0; d < dims; ++d) {
    pooling.axes.at(first + d) = {(*window).at(d), (*step).at(d),
                                  node.result_types.at(0).shape.at(first + d)};
  }
  return pooling;
}

// Whether it gives the node's result, but for axes of one element that the node drops.
bool Gives(const Pooling& pooling, const TensorType& input, const TensorType& result) {
  int64_t elements = 1;
  for (const Pooling::Axis& axis : pooling.axes) elements *= axis.outputs;
  return input.data_type == result.data_type && elements == result.elements();
}

bool IsWhole(const Pooling::Axis& axis, int64_t extent) {
  return axis.outputs == 1 && axis.window == extent;
}

// One axis in windows.
std::string PoolAlong(EditBuilder& builder, const std::string& value, int axis,
                      const Pooling::Axis& windows) {
  const std::vector<int64_t> shape = builder.TypeOf(value).shape;
  int64_t before = 1;
  int64_t after = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d < At(axis)) before *= shape.at(d);
    if (d > At(axis)) after *= shape.at(d);
  }
  std::vector<int64_t> pooled = shape;
  pooled.at(At(axis)) = windows.outputs;
  const std::string flat = builder.Reshape(value, {before, shape.at(At(axis)), after});
  return builder.Reshape(builder.AveragePool(flat, {windows.window, 1}, {windows.step, 1}), pooled);
}

// Means of windows over some of the last two or three axes at once; empty where they are
// elsewhere.
std::string PoolTogether(EditBuilder& builder, const std::string& value, const Pooling& pooling) {
  const size_t rank = pooling.axes.size();
  for (const size_t dims : {size_t{2}, size_t{3}}) {
    if (rank != dims + 1 && rank != dims + 2) continue;
    std::vector<int64_t> window;
    std::vector<int64_t> step;
    for (size_t d = rank - dims; d < rank; ++d) {
      window.push_back(pooling.axes.at(d).window);
      step.push_back(pooling.axes.at(d).step);
    }
    const bool has_all =
        std::all_of(pooling.axes.begin(), pooling.axes.end() - static_cast<std::ptrdiff_t>(dims),
                    [](const Pooling::Axis& axis) { return axis.is_plain(); });
    // What is left over at the end is cut, as the operator does.
    if (has_all) return builder.AveragePool(value, window, step);
  }
  return "";
}

}  // namespace

Pooling Pooling::Plain(const std::vector<int64_t>& shape, bool is_mean) {
  Pooling pooling{.is_mean = is_mean};
  for (const int64_t extent : shape) pooling.axes.push_back({.outputs = extent});
  return pooling;
}

bool Pooling::is_plain() const {
  return std::all_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.is_plain(); });
}

bool Pooling::Fits(const std::vector<int64_t>& shape) const {
  if (shape.size() != axes.size()) return false;
  for (size_t d = 0; d < axes.size(); ++d) {
    const Axis& axis = axes.at(d);
    if (axis.window < 1 || axis.step < 1 || axis.outputs < 1) return false;
    if (axis.window > shape.at(d)) return false;
    if (axis.outputs - 1 > (shape.at(d) - axis.window) / axis.step) return false;
    if (axis.is_plain() && axis.outputs != shape.at(d)) return false;
  }
  return true;
}

double Pooling::gain() const {
  if (is_mean) return 1;
  double product = 1;
  for (const Axis& axis : axes) product *= static_cast<double>(axis.window);
  return product;
}

std::optional<PoolingNode> FindPooling(const GraphUses& uses, const GraphNode& node) {
  const auto input = FindTensor(node, "self");
  if (!input || node.results.size() != 1) return std::nullopt;
  const TensorType& type = uses.TypeOf(*input);
  if (!IsFloating(type.data_type)) return std::nullopt;
  std::optional<Pooling> pooling = FindReduction(node, type);
  if (!pooling) pooling = FindAveragePool(node, type);
  if (!pooling || !pooling->Fits(type.shape) || !Gives(*pooling, type, node.result_types.at(0))) {
    return std::nullopt;
  }
  return PoolingNode{*input, *std::move(pooling)};
}

std::string Pool(EditBuilder& builder, const std::string& value, const Pooling& pooling) {
  const std::vector<int64_t> shape = builder.TypeOf(value).shape;
  Require(pooling.Fits(shape));
  std::string pooled = value;
  // Whole axes first: they leave least.
  std::vector<int> whole;
  Pooling rest = pooling;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (pooling.axes.at(d).is_plain() || !IsWhole(pooling.axes.at(d), shape.at(d))) continue;
    whole.push_back(static_cast<int>(d));
    rest.axes.at(d) = {};
  }
  pooled = pooling.is_mean ? builder.Mean(pooled, whole) : builder.Sum(pooled, whole);
  if (rest.is_plain()) return pooled;
  const std::string together = PoolTogether(builder, pooled, rest);
  if (!together.empty()) {
    pooled = together;
  } else {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!rest.axes.at(d).is_plain()) {
        pooled = PoolAlong(builder, pooled, static_cast<int>(d), rest.axes.at(d));
      }
    }
  }
  return builder.Scale(pooled, rest.gain());
}

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/graph/graph.h"
#include "kernel/rewrite/graph_edit.h"

namespace mtmc::kernel {

// Writes the nodes of an edit, with the types of their results. Each function adds one
// operator and gives the name of its result, or its argument where there is nothing to do.
// Axes are non-negative; shapes and extents are required to fit.
class EditBuilder {
 public:
  // For an edit before `site`; both must outlive the builder.
  EditBuilder(const GraphUses& uses, const GraphNode& site)
      : uses_(uses), site_(site), origin_(&site) {}

  // Nodes that are added from here on stand in the line of `origin`.
  void SetOrigin(const GraphNode& origin) { origin_ = &origin; }

  // Type of a value of the graph or of the edit.
  const TensorType& TypeOf(const std::string& value) const;

  // A node like another, with some of its tensors replaced.
  std::string AddLike(const GraphNode& node,
                      const std::map<std::string, std::string, std::less<>>& instead,
                      std::vector<int64_t> shape);

  std::string Reshape(const std::string& value, const std::vector<int64_t>& shape);
  std::string Permute(const std::string& value, const std::vector<int>& axes);
  std::string Flip(const std::string& value, const std::vector<int>& axes);
  // Elements `start`, `start + step`, ... of an axis, `count` of them.
  std::string Slice(const std::string& value, int axis, int64_t start, int64_t count,
                    int64_t step = 1);
  // Zeros at both ends of an axis; negative numbers cut.
  std::string Pad(const std::string& value, int axis, int64_t before, int64_t after);
  std::string Concatenate(const std::vector<std::string>& values, int axis);
  // Over some axes, which stay with one element.
  std::string Sum(const std::string& value, const std::vector<int>& axes);
  std::string Mean(const std::string& value, const std::vector<int>& axes);
  // Averages of windows over the last axes, two or three of them.
  std::string AveragePool(const std::string& value, const std::vector<int64_t>& window,
                          const std::vector<int64_t>& step);
  std::string Scale(const std::string& value, double factor);
  // Plus a number.
  std::string Shift(const std::string& value, double term);
  std::string Multiply(const std::string& value, const std::string& other);
  // Plus a tensor of a shape that broadcasts to that of the value.
  std::string Plus(const std::string& value, const std::string& other);
  std::string Fill(const std::vector<int64_t>& shape, double value, DataType type);
  // [..., M, K] times [..., K, N] with equal batches.
  std::string MatrixProduct(const std::string& left, const std::string& right);
  // `input` [..., K] times `weight` [N, K], plus `bias` [N] unless it is empty.
  std::string Linear(const std::string& input, const std::string& weight, const std::string& bias);

  struct Geometry {
    std::vector<int64_t> stride;
    std::vector<int64_t> padding;
    std::vector<int64_t> dilation;
    int64_t groups = 1;
  };

  // `input` [N, C, ...] with `weight` [O, C / groups, ...], plus `bias` [O] unless it is empty,
  // over one to three axes.
  std::string Convolution(const std::string& input, const std::string& weight,
                          const std::string& bias, const Geometry& geometry);

  // [N, C, ...] as [N, ..., C], written to memory of its own.
  std::string ChannelsLast(const std::string& value);
  // A pooling like `node`, of `input` [N, ..., C].
  std::string PoolingChannelsLast(const GraphNode& node, const std::string& input);
  // `input` [N, ..., C] with `weight` [O, ..., C / groups], or [C, ..., O / groups] of a transposed
  // one; to [N, ..., O]. With channels first the result has type `type`.
  std::string ConvolutionChannelsLast(const std::string& input, const std::string& weight,
                                      const std::string& bias, const TensorType& type,
                                      const Geometry& geometry, bool is_transposed,
                                      const std::vector<int64_t>& output_padding);

  // The edit in which `value` stands for the first result of `site`. The builder is spent.
  GraphEdit Finish(const std::string& value);

 private:
  std::string Add(std::string_view op, std::vector<GraphArgument> arguments, TensorType type);
  std::string FreeName(std::string_view op) const;

  const GraphUses& uses_;
  const GraphNode& site_;
  const GraphNode* origin_;
  std::vector<GraphNode> nodes_;
  std::map<std::string, TensorType, std::less<>> types_;
};

}  // namespace mtmc::kernel

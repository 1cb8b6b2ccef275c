// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

// A convolution over `dims` spatial dimensions as PyTorch describes it.
struct Geometry {
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride;
  std::vector<int64_t> padding;  // before each dimension
  std::vector<int64_t> dilation;
  int64_t groups = 1;

  size_t dims() const { return kernel.size(); }
};

Geometry GeometryOf(const NodeLowering& node, const Elements& weight) {
  Geometry geometry;
  geometry.kernel.assign(weight.type.shape.begin() + 2, weight.type.shape.end());
  const size_t dims = geometry.dims();
  geometry.stride = node.Ints("stride", dims, 1);
  geometry.dilation = node.Ints("dilation", dims, 1);
  geometry.groups = node.Int("groups", 1);
  geometry.padding = node.Ints("padding", dims, 0);
  // `same` puts the odd element behind.
  if (node.FindText("padding") == "same") {
    for (size_t d = 0; d < dims; ++d) {
      geometry.padding.at(d) = geometry.dilation.at(d) * (geometry.kernel.at(d) - 1) / 2;
    }
  }
  RequireWindowValues(geometry.kernel, 1);
  RequireWindowValues(geometry.stride, 1);
  RequireWindowValues(geometry.dilation, 1);
  RequireWindowValues(geometry.padding, 0);
  Require(geometry.groups >= 1 && geometry.groups <= weight.type.shape.at(0));
  Require(weight.type.shape.at(1) >= 1);
  return geometry;
}

// Position in the input that output `o` and tap `k` meet: o * stride - padding +
// k * dilation, and whether it lies inside.
ScalarPtr InputPosition(const Geometry& g, size_t d, const ScalarPtr& o, const ScalarPtr& k) {
  return Sub(Add(Mul(o, Index(g.stride.at(d))), Mul(k, Index(g.dilation.at(d)))),
             Index(g.padding.at(d)));
}

ScalarPtr IsInside(const ScalarPtr& position, int64_t extent) {
  return And(LessEqual(Index(0), position), Less(position, Index(extent)));
}

// Group of a channel that is one of `per_group`.
ScalarPtr GroupOf(const ScalarPtr& channel, int64_t per_group, int64_t groups) {
  return groups == 1 ? Index(0) : FloorDiv(channel, per_group);
}

// A convolution with the axes of channels in front, whatever the node has.
struct Problem {
  Elements input;
  Elements weight;
  // [N, O, ...].
  std::vector<int64_t> result;
  // Whether the node's result is [N, ..., O].
  bool is_channels_last = false;
};

// Defines the result: the contraction, and the bias where there is one.
bool Finish(NodeLowering& node, const Problem& problem, const std::vector<int64_t>& extents,
            const ScalarPtr& lhs, const ScalarPtr& rhs) {
  const TensorType type{ComputeType(node.result_type().data_type), problem.result};
  const auto bias = node.FindTensor("bias");
  const bool is_result = !bias && !problem.is_channels_last && type == node.result_type();
  const Elements product =
      node.Contract(type, extents, lhs, rhs, is_result ? node.result() : node.NameOf("product"));
  if (is_result) return true;
  const auto element = [&](std::vector<ScalarPtr> indices) {
    if (problem.is_channels_last) indices = ChannelsFirst(indices, indices.size());
    const ScalarPtr sum = product.at(indices);
    return bias ? Add(sum, Cast(bias->at({indices.at(1)}), type.data_type)) : sum;
  };
  node.Define({{type.data_type, node.result_type().shape}, element});
  return true;
}

// out[n, o, p...] = sum over c, k... of in[n, group(o) * C + c, position...] * w[o, c, k...].
bool LowerConvolution(NodeLowering& node, const Problem& problem, const Geometry& g) {
  const auto& [input, weight, result, _] = problem;
  const size_t dims = g.dims();
  const int64_t per_group = weight.type.shape.at(1);
  const std::vector<ScalarPtr> axes = Axes(static_cast<int>(2 * dims + 3));
  const ScalarPtr& c = axes.at(dims + 2);
  const ScalarPtr group = GroupOf(axes.at(1), weight.type.shape.at(0) / g.groups, g.groups);
  std::vector<ScalarPtr> position = {axes.at(0), Add(Mul(group, Index(per_group)), c)};
  std::vector<ScalarPtr> tap = {axes.at(1), c};
  std::vector<int64_t> extents = {per_group};
  ScalarPtr is_inside = Literal(1, DataType::kBool);
  for (size_t d = 0; d < dims; ++d) {
    const ScalarPtr& k = axes.at(dims + 3 + d);
    position.push_back(InputPosition(g, d, axes.at(2 + d), k));
    tap.push_back(k);
    extents.push_back(g.kernel.at(d));
    const int64_t extent = input.type.shape.at(2 + d);
    const int64_t last = (result.at(2 + d) - 1) * g.stride.at(d) +
                         (g.kernel.at(d) - 1) * g.dilation.at(d) - g.padding.at(d);
    if (g.padding.at(d) > 0 || last >= extent) {
      is_inside = And(is_inside, IsInside(position.back(), extent));
    }
  }
  const DataType type = input.type.data_type;
  return Finish(node, problem, extents, Select(is_inside, input.at(position), Literal(0, type)),
                weight.at(tap));
}

// out[n, o, p...] = sum over c, k... of in[n, group(o) * C + c, q...] * w[group(o) * C + c, o',
// k...] with q = (p + padding - k * dilation) / stride where that is whole and inside.
bool LowerTransposed(NodeLowering& node, const Problem& problem, const Geometry& g) {
  const Elements& input = problem.input;
  const Elements& weight = problem.weight;
  const size_t dims = g.dims();
  const int64_t outputs_per_group = weight.type.shape.at(1);
  const int64_t inputs_per_group = weight.type.shape.at(0) / g.groups;
  const std::vector<ScalarPtr> axes = Axes(static_cast<int>(2 * dims + 3));
  const ScalarPtr group = GroupOf(axes.at(1), outputs_per_group, g.groups);
  const ScalarPtr channel = Add(Mul(group, Index(inputs_per_group)), axes.at(dims + 2));
  std::vector<ScalarPtr> position = {axes.at(0), channel};
  std::vector<ScalarPtr> tap = {
      channel, g.groups == 1 ? axes.at(1) : Sub(axes.at(1), Mul(group, Index(outputs_per_group)))};
  std::vector<int64_t> extents = {inputs_per_group};
  ScalarPtr is_inside = Literal(1, DataType::kBool);
  for (size_t d = 0; d < dims; ++d) {
    const ScalarPtr& k = axes.at(dims + 3 + d);
    const ScalarPtr scaled =
        Sub(Add(axes.at(2 + d), Index(g.padding.at(d))), Mul(k, Index(g.dilation.at(d))));
    position.push_back(FloorDiv(scaled, g.stride.at(d)));
    tap.push_back(k);
    extents.push_back(g.kernel.at(d));
    is_inside = And(is_inside, LessEqual(Index(0), scaled));
    if (g.stride.at(d) > 1) {
      is_inside =
          And(is_inside, Apply(Scalar::Operator::kEqual, {Mod(scaled, g.stride.at(d)), Index(0)}));
    }
    is_inside = And(is_inside, Less(position.back(), Index(input.type.shape.at(2 + d))));
  }
  const DataType type = input.type.data_type;
  return Finish(node, problem, extents, Select(is_inside, input.at(position), Literal(0, type)),
                weight.at(tap));
}

LowerNode Convolution(bool is_transposed, bool is_channels_last = false) {
  return [is_transposed, is_channels_last](NodeLowering& node) {
    const DataType type = ComputeType(node.result_type().data_type);
    Problem problem{.input = CastTo(node.Tensor("input"), type),
                    .weight = CastTo(node.Tensor("weight"), type),
                    .result = node.result_type().shape,
                    .is_channels_last = is_channels_last};
    // An input without batch dimension has one dimension less than the weight.
    if (problem.input.rank() != problem.weight.rank() || problem.input.rank() < 3) return false;
    if (problem.result.size() != problem.input.type.shape.size()) return false;
    if (is_channels_last) {
      problem.input = WithChannelsFirst(problem.input);
      problem.weight = WithChannelsFirst(problem.weight);
      problem.result = ChannelsFirst(problem.result, problem.result.size());
    }
    const Geometry geometry = GeometryOf(node, problem.weight);
    const bool transposed = is_transposed || node.Bool("transposed", false);
    return transposed ? LowerTransposed(node, problem, geometry)
                      : LowerConvolution(node, problem, geometry);
  };
}

// [N, C, ...] as [N, ..., C]. No movement, which whoever reads it would read through: it is there
// for the memory that it writes.
bool LowerChannelsLast(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  std::vector<int64_t> shape = self.type.shape;
  if (self.rank() < 3) return false;
  std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
  if (shape != node.result_type().shape) return false;
  node.Define(
      {{self.type.data_type, std::move(shape)}, [&self](const std::vector<ScalarPtr>& indices) {
         return self.at(ChannelsFirst(indices, indices.size()));
       }});
  return true;
}

}  // namespace

void AddConvolutionOps(OpTable& table) {
  for (const char* name : {"conv1d", "conv2d", "conv3d", "convolution"}) {
    table[name] = Convolution(/*is_transposed=*/false);
  }
  for (const char* name : {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}) {
    table[name] = Convolution(/*is_transposed=*/true);
  }
  // Of our own (kernel/rewrite/channels_last.cc).
  table["channels_last"] = LowerChannelsLast;
  table["convolution_channels_last"] =
      Convolution(/*is_transposed=*/false, /*is_channels_last=*/true);
}

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/rewrite/convolution_node.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "kernel/loops/elements.h"
#include "kernel/rewrite/node_arguments.h"

namespace mtmc::kernel {
namespace {

constexpr std::string_view kPlain[] = {"conv1d", "conv2d", "conv3d"};
constexpr std::string_view kTransposed[] = {"conv_transpose1d", "conv_transpose2d",
                                            "conv_transpose3d"};

bool IsAmong(std::string_view op, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

}  // namespace

std::optional<ConvolutionNode> FindConvolution(const GraphUses& uses, const GraphNode& node) {
  const bool is_transposed = IsAmong(OperatorOf(node), kTransposed);
  if (!is_transposed && !IsAmong(OperatorOf(node), kPlain)) return std::nullopt;
  ConvolutionNode found{.input = FindTensor(node, "input").value_or(""),
                        .weight = FindTensor(node, "weight").value_or(""),
                        .bias = FindTensor(node, "bias").value_or(""),
                        .groups = FindInt(node, "groups").value_or(1),
                        .is_transposed = is_transposed};
  if (found.input.empty() || found.weight.empty()) return std::nullopt;
  const std::vector<int64_t>& kernel = uses.TypeOf(found.weight).shape;
  const size_t rank = kernel.size();
  if (rank < 3 || uses.TypeOf(found.input).shape.size() != rank) return std::nullopt;
  const auto stride = FindInts(node, "stride", rank - 2, 1);
  const auto padding = FindInts(node, "padding", rank - 2, 0);
  const auto output_padding = FindInts(node, "output_padding", rank - 2, 0);
  const auto dilation = FindInts(node, "dilation", rank - 2, 1);
  if (!stride || !padding || !output_padding || !dilation) return std::nullopt;
  RequireWindowValues(*stride, 1);
  RequireWindowValues(*dilation, 1);
  RequireWindowValues(*padding, 0);
  RequireWindowValues(*output_padding, 0);
  found.stride = *stride;
  found.padding = *padding;
  found.output_padding = *output_padding;
  found.dilation = *dilation;
  return found;
}

}  // namespace mtmc::kernel

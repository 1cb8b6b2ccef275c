// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/rewrite/convolution_node.h"
#include "kernel/rewrite/edit_builder.h"
#include "kernel/rewrite/node_arguments.h"
#include "kernel/rewrite/rules.h"

namespace mtmc::kernel {
namespace {

// Axes of [N, ..., C] that make [N, C, ...].
std::vector<int> ChannelsFirst(size_t rank) {
  std::vector<int> axes(rank);
  std::iota(axes.begin() + 1, axes.end(), 0);
  axes.at(1) = static_cast<int>(rank) - 1;
  return axes;
}

// What another convolution has left with channels last, if `value` is that with the axes
// exchanged and nothing else.
std::optional<std::string> FindMoved(const GraphUses& uses, const std::string& value) {
  const GraphNode* moved = uses.ProducerOf(value);
  if (moved == nullptr || OperatorOf(*moved) != "permute") return std::nullopt;
  std::optional<std::string> source = FindTensor(*moved, "self");
  const GraphNode* node = source ? uses.ProducerOf(*source) : nullptr;
  if (node == nullptr || !OperatorOf(*node).ends_with("channels_last")) return std::nullopt;
  const size_t rank = uses.TypeOf(value).shape.size();
  const std::vector<int> axes = ChannelsFirst(rank);
  const auto given = FindInts(*moved, "dims", rank, 0);
  if (!given || std::vector<int64_t>(axes.begin(), axes.end()) != *given) return std::nullopt;
  return source;
}

// How far above a pooling a convolution with channels last is looked for.
constexpr int kMostSteps = 4;

// Whether a convolution or pooling with channels last is among what `value` is made from.
bool ComesWithChannelsLast(const GraphUses& uses, const std::string& value, int steps) {
  const GraphNode* node = uses.ProducerOf(value);
  if (node == nullptr) return false;
  if (OperatorOf(*node).ends_with("channels_last")) return true;
  if (steps == 0) return false;
  return std::any_of(
      node->arguments.begin(), node->arguments.end(), [&](const GraphArgument& argument) {
        const auto* tensor = std::get_if<ValueArgument>(&argument.value);
        return tensor != nullptr && ComesWithChannelsLast(uses, tensor->name, steps - 1);
      });
}

// A value with channels last, and the same again with them first.
struct Both {
  std::string last;
  std::string first;
};

// Writes `value` with channels last, unless it is so already. Whoever reads it later then reads
// what is written here, so that it need not be in memory twice.
Both TurnAround(const GraphUses& uses, EditBuilder& builder, const std::string& value) {
  if (const auto known = FindMoved(uses, value)) return {*known, value};
  const std::string last = builder.ChannelsLast(value);
  return {last, builder.Permute(last, ChannelsFirst(uses.TypeOf(value).shape.size()))};
}

// `result`, which has channels last, in the place of the site's.
GraphEdit Finish(EditBuilder& builder, const std::string& result, const std::string& value,
                 const Both& input) {
  const size_t rank = builder.TypeOf(result).shape.size();
  GraphEdit edit = builder.Finish(builder.Permute(result, ChannelsFirst(rank)));
  edit.instead.emplace(value, input.first);
  return edit;
}

}  // namespace

std::optional<GraphEdit> FindPoolingChannelsLast(const GraphUses& uses, const GraphNode& node) {
  constexpr std::string_view kPoolings[] = {"max_pool2d", "max_pool3d", "avg_pool2d", "avg_pool3d"};
  const std::string_view op = OperatorOf(node);
  if (std::find(std::begin(kPoolings), std::end(kPoolings), op) == std::end(kPoolings)) {
    return std::nullopt;
  }
  const std::optional<std::string> self = FindTensor(node, "self");
  if (!self || node.results.size() != 1 || !uses.IsRead(node.results.at(0))) return std::nullopt;
  const size_t rank = op.find("3d") == std::string_view::npos ? 4 : 5;
  if (uses.TypeOf(*self).shape.size() != rank || node.result_types.at(0).shape.size() != rank) {
    return std::nullopt;
  }
  if (!ComesWithChannelsLast(uses, *self, kMostSteps)) return std::nullopt;
  EditBuilder builder(uses, node);
  const Both input = TurnAround(uses, builder, *self);
  return Finish(builder, builder.PoolingChannelsLast(node, input.last), *self, input);
}

std::optional<GraphEdit> FindChannelsLast(const GraphUses& uses, const GraphNode& node) {
  std::optional<ConvolutionNode> found = FindConvolution(uses, node);
  if (!found || !uses.IsRead(node.results.at(0))) return std::nullopt;
  const TensorType& type = node.result_types.at(0);
  if (type.shape.size() != found->dims() + 2) return std::nullopt;
  EditBuilder builder(uses, node);
  const Both input = TurnAround(uses, builder, found->input);
  const std::string result = builder.ConvolutionChannelsLast(
      input.last, builder.ChannelsLast(found->weight), found->bias, type,
      {.stride = std::move(found->stride),
       .padding = std::move(found->padding),
       .dilation = std::move(found->dilation),
       .groups = found->groups},
      found->is_transposed, found->output_padding);
  return Finish(builder, result, found->input, input);
}

}  // namespace mtmc::kernel

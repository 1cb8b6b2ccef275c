// SPDX-License-Identifier: Apache-2.0
#include "kernel/rewrite/edit_builder.h"

#include <algorithm>
#include <utility>

#include "kernel/graph/text.h"
#include "kernel/rewrite/node_arguments.h"

namespace mtmc::kernel {
namespace {

GraphArgument Tensor(std::string name, const std::string& value) {
  return {.name = std::move(name), .value = ValueArgument{value}};
}

GraphArgument None(std::string name) { return {.name = std::move(name), .value = NoneArgument()}; }

GraphArgument Flag(std::string name, bool value) {
  return {.name = std::move(name), .value = value};
}

GraphArgument Whole(std::string name, int64_t value) {
  return {.name = std::move(name), .value = value};
}

GraphArgument Real(std::string name, double value) {
  return {.name = std::move(name), .value = value};
}

template <typename Number>
GraphArgument List(std::string name, const std::vector<Number>& values) {
  std::vector<GraphArgument> elements;
  elements.reserve(values.size());
  for (const Number value : values) elements.push_back(Whole("", value));
  return {.name = std::move(name), .value = std::move(elements)};
}

GraphArgument TensorOrNone(std::string name, const std::string& value) {
  return value.empty() ? None(std::move(name)) : Tensor(std::move(name), value);
}

size_t At(int axis) { return static_cast<size_t>(axis); }

TensorType Without(TensorType type, const std::vector<int>& axes) {
  for (const int axis : axes) type.shape.at(At(axis)) = 1;
  return type;
}

TensorType WithChannelsLast(TensorType type) {
  std::rotate(type.shape.begin() + 1, type.shape.begin() + 2, type.shape.end());
  return type;
}

}  // namespace

const TensorType& EditBuilder::TypeOf(const std::string& value) const {
  const auto own = types_.find(value);
  return own == types_.end() ? uses_.TypeOf(value) : own->second;
}

std::string EditBuilder::FreeName(std::string_view op) const {
  const std::string stem = Concat(site_.name, "_", op);
  std::string name = stem;
  for (int suffix = 2; uses_.IsTaken(name) || types_.contains(name); ++suffix) {
    name = Concat(stem, "_", suffix);
  }
  return name;
}

std::string EditBuilder::Add(std::string_view op, std::vector<GraphArgument> arguments,
                             TensorType type) {
  GraphNode node{.op = std::string(op), .arguments = std::move(arguments), .line = origin_->line};
  node.module_path = origin_->module_path;
  node.name = FreeName(OperatorOf(node));
  node.results = {node.name};
  node.result_types = {type};
  types_[node.name] = std::move(type);
  nodes_.push_back(std::move(node));
  return nodes_.back().name;
}

std::string EditBuilder::AddLike(const GraphNode& node,
                                 const std::map<std::string, std::string, std::less<>>& instead,
                                 std::vector<int64_t> shape) {
  std::vector<GraphArgument> arguments = node.arguments;
  for (GraphArgument& argument : arguments) {
    auto* value = std::get_if<ValueArgument>(&argument.value);
    if (value == nullptr) continue;
    const auto found = instead.find(value->name);
    if (found != instead.end()) value->name = found->second;
  }
  return Add(node.op, std::move(arguments), {node.result_types.at(0).data_type, std::move(shape)});
}

std::string EditBuilder::Reshape(const std::string& value, const std::vector<int64_t>& shape) {
  const TensorType& type = TypeOf(value);
  if (type.shape == shape) return value;
  TensorType reshaped{type.data_type, shape};
  return Add("aten::reshape.default", {Tensor("self", value), List("shape", shape)},
             std::move(reshaped));
}

std::string EditBuilder::Permute(const std::string& value, const std::vector<int>& axes) {
  if (std::is_sorted(axes.begin(), axes.end())) return value;
  const TensorType& type = TypeOf(value);
  TensorType permuted{type.data_type, {}};
  for (const int axis : axes) permuted.shape.push_back(type.shape.at(At(axis)));
  return Add("aten::permute.default", {Tensor("self", value), List("dims", axes)},
             std::move(permuted));
}

std::string EditBuilder::Flip(const std::string& value, const std::vector<int>& axes) {
  const TensorType type = TypeOf(value);
  const bool changes = std::any_of(axes.begin(), axes.end(),
                                   [&type](int axis) { return type.shape.at(At(axis)) > 1; });
  if (!changes) return value;
  return Add("aten::flip.default", {Tensor("self", value), List("dims", axes)}, type);
}

std::string EditBuilder::Slice(const std::string& value, int axis, int64_t start, int64_t count,
                               int64_t step) {
  TensorType type = TypeOf(value);
  if (start == 0 && step == 1 && count == type.shape.at(At(axis))) return value;
  type.shape.at(At(axis)) = count;
  return Add("aten::slice.Tensor",
             {Tensor("self", value), Whole("dim", axis), Whole("start", start),
              Whole("end", start + (count - 1) * step + 1), Whole("step", step)},
             std::move(type));
}

std::string EditBuilder::Pad(const std::string& value, int axis, int64_t before, int64_t after) {
  if (before == 0 && after == 0) return value;
  TensorType type = TypeOf(value);
  // Two numbers an axis, the last axis first.
  std::vector<int64_t> pad(2 * (type.shape.size() - At(axis)));
  pad.at(pad.size() - 2) = before;
  pad.at(pad.size() - 1) = after;
  type.shape.at(At(axis)) += before + after;
  return Add("aten::constant_pad_nd.default",
             {Tensor("self", value), List("pad", pad), Real("value", 0)}, std::move(type));
}

std::string EditBuilder::Concatenate(const std::vector<std::string>& values, int axis) {
  if (values.size() == 1) return values.at(0);
  TensorType type = TypeOf(values.at(0));
  type.shape.at(At(axis)) = 0;
  std::vector<GraphArgument> tensors;
  for (const std::string& value : values) {
    type.shape.at(At(axis)) += TypeOf(value).shape.at(At(axis));
    tensors.push_back(Tensor("", value));
  }
  return Add("aten::cat.default",
             {{.name = "tensors", .value = std::move(tensors)}, Whole("dim", axis)},
             std::move(type));
}

std::string EditBuilder::Sum(const std::string& value, const std::vector<int>& axes) {
  if (axes.empty()) return value;
  return Add("aten::sum.dim_IntList",
             {Tensor("self", value), List("dim", axes), Flag("keepdim", true), None("dtype")},
             Without(TypeOf(value), axes));
}

std::string EditBuilder::Mean(const std::string& value, const std::vector<int>& axes) {
  if (axes.empty()) return value;
  return Add("aten::mean.dim",
             {Tensor("self", value), List("dim", axes), Flag("keepdim", true), None("dtype")},
             Without(TypeOf(value), axes));
}

std::string EditBuilder::AveragePool(const std::string& value, const std::vector<int64_t>& window,
                                     const std::vector<int64_t>& step) {
  TensorType type = TypeOf(value);
  const size_t first = type.shape.size() - window.size();
  for (size_t d = 0; d < window.size(); ++d) {
    type.shape.at(first + d) = (type.shape.at(first + d) - window.at(d)) / step.at(d) + 1;
  }
  return Add(Concat("aten::avg_pool", window.size(), "d.default"),
             {Tensor("self", value), List("kernel_size", window), List("stride", step),
              List("padding", std::vector<int64_t>(window.size(), 0)), Flag("ceil_mode", false),
              Flag("count_include_pad", true), None("divisor_override")},
             std::move(type));
}

std::string EditBuilder::Scale(const std::string& value, double factor) {
  if (factor == 1) return value;
  return Add("aten::mul.Tensor", {Tensor("self", value), Real("other", factor)}, TypeOf(value));
}

std::string EditBuilder::Shift(const std::string& value, double term) {
  return Add("aten::add.Tensor", {Tensor("self", value), Real("other", term), Whole("alpha", 1)},
             TypeOf(value));
}

std::string EditBuilder::Multiply(const std::string& value, const std::string& other) {
  TensorType type = TypeOf(value);
  const std::vector<int64_t>& shape = TypeOf(other).shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t& extent = type.shape.at(type.shape.size() - shape.size() + d);
    if (extent == 1) extent = shape.at(d);
  }
  return Add("aten::mul.Tensor", {Tensor("self", value), Tensor("other", other)}, std::move(type));
}

std::string EditBuilder::Plus(const std::string& value, const std::string& other) {
  return Add("aten::add.Tensor", {Tensor("self", value), Tensor("other", other), Whole("alpha", 1)},
             TypeOf(value));
}

std::string EditBuilder::Fill(const std::vector<int64_t>& shape, double value, DataType type) {
  TensorType filled{type, shape};
  return Add("aten::full.default",
             {List("size", shape),
              Real("fill_value", value),
              {.name = "dtype", .value = type},
              None("layout"),
              None("device"),
              None("pin_memory")},
             std::move(filled));
}

std::string EditBuilder::MatrixProduct(const std::string& left, const std::string& right) {
  TensorType type = TypeOf(left);
  type.shape.back() = TypeOf(right).shape.back();
  return Add("aten::matmul.default", {Tensor("self", left), Tensor("other", right)},
             std::move(type));
}

std::string EditBuilder::Linear(const std::string& input, const std::string& weight,
                                const std::string& bias) {
  TensorType type = TypeOf(input);
  type.shape.back() = TypeOf(weight).shape.at(0);
  return Add("aten::linear.default",
             {Tensor("input", input), Tensor("weight", weight), TensorOrNone("bias", bias)},
             std::move(type));
}

std::string EditBuilder::Convolution(const std::string& input, const std::string& weight,
                                     const std::string& bias, const Geometry& geometry) {
  TensorType type = TypeOf(input);
  const std::vector<int64_t>& kernel = TypeOf(weight).shape;
  type.shape.at(1) = kernel.at(0);
  for (size_t d = 0; d + 2 < kernel.size(); ++d) {
    const int64_t reach = geometry.dilation.at(d) * (kernel.at(d + 2) - 1) + 1;
    type.shape.at(d + 2) =
        (type.shape.at(d + 2) + 2 * geometry.padding.at(d) - reach) / geometry.stride.at(d) + 1;
  }
  return Add(Concat("aten::conv", kernel.size() - 2, "d.default"),
             {Tensor("input", input), Tensor("weight", weight), TensorOrNone("bias", bias),
              List("stride", geometry.stride), List("padding", geometry.padding),
              List("dilation", geometry.dilation), Whole("groups", geometry.groups)},
             std::move(type));
}

std::string EditBuilder::ChannelsLast(const std::string& value) {
  return Add("mtmc::channels_last", {Tensor("self", value)}, WithChannelsLast(TypeOf(value)));
}

std::string EditBuilder::PoolingChannelsLast(const GraphNode& node, const std::string& input) {
  std::vector<GraphArgument> arguments = node.arguments;
  for (GraphArgument& argument : arguments) {
    if (argument.name == "self") argument = Tensor("self", input);
  }
  return Add(Concat("mtmc::", OperatorOf(node), "_channels_last"), std::move(arguments),
             WithChannelsLast(node.result_types.at(0)));
}

std::string EditBuilder::ConvolutionChannelsLast(const std::string& input,
                                                 const std::string& weight, const std::string& bias,
                                                 const TensorType& type, const Geometry& geometry,
                                                 bool is_transposed,
                                                 const std::vector<int64_t>& output_padding) {
  return Add("mtmc::convolution_channels_last",
             {Tensor("input", input), Tensor("weight", weight), TensorOrNone("bias", bias),
              List("stride", geometry.stride), List("padding", geometry.padding),
              List("dilation", geometry.dilation), Flag("transposed", is_transposed),
              List("output_padding", output_padding), Whole("groups", geometry.groups)},
             WithChannelsLast(type));
}

GraphEdit EditBuilder::Finish(const std::string& value) {
  const std::string shaped = Reshape(value, site_.result_types.at(0).shape);
  return {.nodes = std::move(nodes_), .instead = {{site_.results.at(0), shaped}}};
}

}  // namespace mtmc::kernel

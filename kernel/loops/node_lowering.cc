// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/node_lowering.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace mtmc::kernel {
namespace {

std::optional<int64_t> ToInt(const GraphArgument& argument) {
  if (const auto* value = std::get_if<int64_t>(&argument.value)) {
    return std::clamp(*value, -kMaxInteger, kMaxInteger);
  }
  if (const auto* value = std::get_if<bool>(&argument.value)) return *value ? 1 : 0;
  if (const auto* value = std::get_if<double>(&argument.value)) {
    if (std::isnan(*value)) return std::nullopt;
    const auto bound = static_cast<double>(kMaxInteger);
    return static_cast<int64_t>(std::clamp(*value, -bound, bound));
  }
  return std::nullopt;
}

std::optional<double> ToDouble(const GraphArgument& argument) {
  if (const auto* value = std::get_if<double>(&argument.value)) return *value;
  if (const auto* value = std::get_if<int64_t>(&argument.value)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<bool>(&argument.value)) return *value ? 1 : 0;
  return std::nullopt;
}

}  // namespace

std::string NodeLowering::op() const {
  std::string_view name = node_.op;
  if (const size_t colons = name.rfind("::"); colons != std::string_view::npos) {
    name.remove_prefix(colons + 2);
  }
  return std::string(name.substr(0, name.find('.')));
}

bool NodeLowering::Has(std::string_view name) const {
  const GraphArgument* argument = node_.FindArgument(name);
  return argument != nullptr && !std::holds_alternative<NoneArgument>(argument->value);
}

std::optional<int64_t> NodeLowering::FindInt(std::string_view name) const {
  const GraphArgument* argument = node_.FindArgument(name);
  return argument == nullptr ? std::nullopt : ToInt(*argument);
}

std::optional<double> NodeLowering::FindDouble(std::string_view name) const {
  const GraphArgument* argument = node_.FindArgument(name);
  return argument == nullptr ? std::nullopt : ToDouble(*argument);
}

std::optional<std::vector<int64_t>> NodeLowering::FindInts(std::string_view name) const {
  const GraphArgument* argument = node_.FindArgument(name);
  if (argument == nullptr) return std::nullopt;
  if (const std::optional<int64_t> single = ToInt(*argument)) {
    return std::vector<int64_t>{*single};
  }
  const auto* list = std::get_if<std::vector<GraphArgument>>(&argument->value);
  if (list == nullptr) return std::nullopt;
  std::vector<int64_t> values;
  for (const GraphArgument& element : *list) {
    const std::optional<int64_t> value = ToInt(element);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::string NodeLowering::FindText(std::string_view name) const {
  const GraphArgument* argument = node_.FindArgument(name);
  if (argument == nullptr) return "";
  const auto* text = std::get_if<std::string>(&argument->value);
  return text == nullptr ? "" : *text;
}

int64_t NodeLowering::Int(std::string_view name, int64_t otherwise) const {
  return FindInt(name).value_or(otherwise);
}

double NodeLowering::Double(std::string_view name, double otherwise) const {
  return FindDouble(name).value_or(otherwise);
}

bool NodeLowering::Bool(std::string_view name, bool otherwise) const {
  return FindInt(name).value_or(otherwise ? 1 : 0) != 0;
}

std::vector<int64_t> NodeLowering::Ints(std::string_view name, size_t count,
                                        int64_t otherwise) const {
  std::vector<int64_t> values = FindInts(name).value_or(std::vector<int64_t>{});
  if (values.empty()) values.assign(count, otherwise);
  if (values.size() == 1) values.assign(count, values[0]);
  Require(values.size() == count);
  return values;
}

bool NodeLowering::IsTensor(std::string_view name) const {
  const GraphArgument* argument = node_.FindArgument(name);
  return argument != nullptr && std::holds_alternative<ValueArgument>(argument->value);
}

std::optional<Elements> NodeLowering::FindTensor(std::string_view name) const {
  const GraphArgument* argument = node_.FindArgument(name);
  if (argument == nullptr) return std::nullopt;
  const auto* value = std::get_if<ValueArgument>(&argument->value);
  if (value == nullptr) return std::nullopt;
  return Value(value->name);
}

std::vector<Elements> NodeLowering::Tensors(std::string_view name) const {
  std::vector<Elements> tensors;
  const GraphArgument* argument = node_.FindArgument(name);
  if (argument == nullptr) return tensors;
  const auto* list = std::get_if<std::vector<GraphArgument>>(&argument->value);
  if (list == nullptr) return tensors;
  for (const GraphArgument& element : *list) {
    if (const auto* value = std::get_if<ValueArgument>(&element.value)) {
      tensors.push_back(Value(value->name));
    }
  }
  return tensors;
}

std::optional<Elements> NodeLowering::FindOperand(std::string_view name) const {
  if (std::optional<Elements> tensor = FindTensor(name)) return tensor;
  const GraphArgument* argument = node_.FindArgument(name);
  if (argument == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<bool>(&argument->value)) {
    return Constant(*value ? 1 : 0, DataType::kBool);
  }
  if (const auto* value = std::get_if<int64_t>(&argument->value)) {
    return Elements{{DataType::kI64, {}},
                    [number = *value](const std::vector<ScalarPtr>&) { return Index(number); }};
  }
  if (const auto* value = std::get_if<double>(&argument->value)) {
    return Constant(*value, DataType::kF64);
  }
  return std::nullopt;
}

Elements NodeLowering::Value(const std::string& name) const {
  const TensorType type = nest_.types.at(name);
  return {type, [name, data_type = type.data_type](const std::vector<ScalarPtr>& indices) {
            return Read(name, indices, data_type);
          }};
}

void NodeLowering::AddLoop(Loop loop) {
  loop.node = node_.name;
  for (size_t i = 0; i < loop.results.size(); ++i) {
    nest_.types.insert_or_assign(loop.results.at(i), loop.types[i]);
  }
  nest_.loops.push_back(std::move(loop));
}

void NodeLowering::AddMap(const Elements& elements, const std::string& name, const TensorType& type,
                          bool is_movement) {
  const Elements wide = CastTo(BroadcastTo(elements, type.shape), type.data_type);
  Loop loop;
  loop.form = Loop::Form::kMap;
  loop.results = {name};
  loop.types = {type};
  loop.extents = type.shape;
  loop.body = wide.at(Axes(static_cast<int>(type.shape.size())));
  loop.is_movement = is_movement;
  AddLoop(std::move(loop));
}

void NodeLowering::Define(const Elements& elements, size_t index) {
  AddMap(elements, node_.results.at(index), node_.result_types.at(index), /*is_movement=*/false);
}

void NodeLowering::DefineMovement(const Elements& elements, size_t index) {
  AddMap(elements, node_.results.at(index), node_.result_types.at(index), /*is_movement=*/true);
}

Elements NodeLowering::Materialize(const Elements& elements, const std::string& name) {
  AddMap(elements, name, elements.type, /*is_movement=*/false);
  return Value(name);
}

Elements NodeLowering::Reduce(const Elements& body, const Reduction& reduction) {
  const int rank = body.rank();
  Loop loop;
  loop.form = Loop::Form::kReduce;
  loop.combiner = reduction.combiner;
  loop.reduction_axes = static_cast<int>(reduction.dims.size());
  std::vector<ScalarPtr> indices(static_cast<size_t>(rank));
  int axis = 0;
  for (int dim = 0; dim < rank; ++dim) {
    const bool is_reduced =
        std::find(reduction.dims.begin(), reduction.dims.end(), dim) != reduction.dims.end();
    if (is_reduced && !reduction.keep) continue;
    if (!is_reduced) indices.at(static_cast<size_t>(dim)) = Axis(axis);
    loop.extents.push_back(is_reduced ? 1 : body.type.shape.at(static_cast<size_t>(dim)));
    ++axis;
  }
  TensorType type{body.type.data_type, loop.extents};
  for (const int dim : reduction.dims) {
    indices.at(static_cast<size_t>(dim)) = Axis(axis++);
    loop.extents.push_back(body.type.shape.at(static_cast<size_t>(dim)));
  }
  loop.body = body.at(indices);
  loop.results = {reduction.name};
  loop.types = {type};
  if (!reduction.second.empty()) {
    const bool is_index =
        reduction.combiner == Combiner::kArgMax || reduction.combiner == Combiner::kArgMin;
    if (is_index) type.data_type = DataType::kI64;
    loop.results.push_back(reduction.second);
    loop.types.push_back(type);
  }
  AddLoop(std::move(loop));
  return Value(reduction.name);
}

Elements NodeLowering::ReduceWindow(
    const TensorType& output, const std::vector<int64_t>& window,
    const std::function<ScalarPtr(const std::vector<ScalarPtr>& axes)>& body,
    const Reduction& reduction) {
  Loop loop;
  loop.form = Loop::Form::kReduce;
  loop.combiner = reduction.combiner;
  loop.reduction_axes = static_cast<int>(window.size());
  loop.extents = output.shape;
  loop.extents.insert(loop.extents.end(), window.begin(), window.end());
  std::vector<ScalarPtr> axes = Axes(static_cast<int>(loop.extents.size()));
  // The only window along a dimension overlaps no other: its elements are a row's.
  for (size_t d = 0; d < output.shape.size(); ++d) {
    if (output.shape[d] == 1) axes[d] = Index(0);
  }
  loop.body = body(axes);
  loop.results = {reduction.name};
  loop.types = {{loop.body->type, output.shape}};
  if (!reduction.second.empty()) {
    loop.results.push_back(reduction.second);
    loop.types.push_back({DataType::kI64, output.shape});
  }
  AddLoop(std::move(loop));
  return Value(reduction.name);
}

Elements NodeLowering::Contract(const TensorType& output, const std::vector<int64_t>& extents,
                                const ScalarPtr& lhs, const ScalarPtr& rhs,
                                const std::string& name) {
  Loop loop;
  loop.form = Loop::Form::kContract;
  loop.extents = output.shape;
  loop.extents.insert(loop.extents.end(), extents.begin(), extents.end());
  loop.reduction_axes = static_cast<int>(extents.size());
  loop.lhs = lhs;
  loop.rhs = rhs;
  loop.results = {name};
  loop.types = {output};
  AddLoop(std::move(loop));
  return Value(name);
}

Elements NodeLowering::Scan(const Elements& body, Combiner combiner, int dim,
                            const std::string& name) {
  Loop loop;
  loop.form = Loop::Form::kScan;
  loop.combiner = combiner;
  loop.extents = body.type.shape;
  loop.scan_axis = dim;
  loop.body = body.at(Axes(body.rank()));
  loop.results = {name};
  loop.types = {body.type};
  AddLoop(std::move(loop));
  return Value(name);
}

std::string NodeLowering::NameOf(std::string_view suffix) const {
  std::string name = node_.name + "_" + std::string(suffix);
  while (nest_.types.contains(name) || graph_.FindType(name) != nullptr) name += "_";
  return name;
}

int NodeLowering::Dimension(int64_t dim, int rank) {
  const int64_t from_start = dim < 0 ? dim + std::max(rank, 1) : dim;
  Require(from_start >= 0 && from_start < std::max(rank, 1));
  return static_cast<int>(from_start);
}

std::vector<int> NodeLowering::Dimensions(std::string_view name, int rank) const {
  std::vector<int> dims;
  for (const int64_t dim : FindInts(name).value_or(std::vector<int64_t>{})) {
    dims.push_back(Dimension(dim, rank));
  }
  if (dims.empty()) {
    dims.resize(static_cast<size_t>(rank));
    std::iota(dims.begin(), dims.end(), 0);
  }
  std::sort(dims.begin(), dims.end());
  Require(std::adjacent_find(dims.begin(), dims.end()) == dims.end());
  return dims;
}

}  // namespace mtmc::kernel

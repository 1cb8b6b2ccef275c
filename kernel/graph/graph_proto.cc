// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/graph_proto.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "common/base/string_view.h"
#include "kernel/graph/identifier.h"
#include "kernel/graph/structure_proto.h"
#include "kernel/graph/text.h"
#include "mtmc/v1/graph.pb.h"
#include "mtmc/v1/tensor.pb.h"

namespace mtmc::kernel {
namespace {

// Far above any traced model (KernelBench's largest has 1,100 nodes). Passes that
// are quadratic in nodes stay within seconds, and those that recurse along a chain
// of nodes within a thread's stack of 8 MiB, which a chain of 10,000 leaves.
constexpr int kMaxNodes = 3'000;
constexpr int kMaxArguments = 100'000;

absl::Status Invalid(std::string_view subject, std::string_view name, std::string_view problem) {
  return absl::InvalidArgumentError(Concat(subject, " ", Quoted(name), " ", problem));
}

// The values defined so far; keeps rule 1 of graph.h.
class ValueTable {
 public:
  absl::Status Define(std::string_view name) {
    if (!IsIdentifier(name)) return Invalid("value", name, "is not a C identifier");
    if (!names_.insert(std::string(name)).second) return Invalid("value", name, "is defined twice");
    return absl::OkStatus();
  }

  bool Contains(std::string_view name) const { return names_.find(name) != names_.end(); }

 private:
  std::set<std::string, std::less<>> names_;
};

absl::StatusOr<DataType> FromProto(v1::DataType proto) {
  switch (proto) {
    case v1::DATA_TYPE_F64:
      return DataType::kF64;
    case v1::DATA_TYPE_F32:
      return DataType::kF32;
    case v1::DATA_TYPE_F16:
      return DataType::kF16;
    case v1::DATA_TYPE_BF16:
      return DataType::kBf16;
    case v1::DATA_TYPE_I64:
      return DataType::kI64;
    case v1::DATA_TYPE_I32:
      return DataType::kI32;
    case v1::DATA_TYPE_I16:
      return DataType::kI16;
    case v1::DATA_TYPE_I8:
      return DataType::kI8;
    case v1::DATA_TYPE_U8:
      return DataType::kU8;
    case v1::DATA_TYPE_BOOL:
      return DataType::kBool;
    default:
      break;
  }
  return absl::InvalidArgumentError(
      Concat("element type ", static_cast<int>(proto), " is not one of mtmc.v1.DataType"));
}

v1::DataType ToProto(DataType type) {
  switch (type) {
    case DataType::kF64:
      return v1::DATA_TYPE_F64;
    case DataType::kF32:
      return v1::DATA_TYPE_F32;
    case DataType::kF16:
      return v1::DATA_TYPE_F16;
    case DataType::kBf16:
      return v1::DATA_TYPE_BF16;
    case DataType::kI64:
      return v1::DATA_TYPE_I64;
    case DataType::kI32:
      return v1::DATA_TYPE_I32;
    case DataType::kI16:
      return v1::DATA_TYPE_I16;
    case DataType::kI8:
      return v1::DATA_TYPE_I8;
    case DataType::kU8:
      return v1::DATA_TYPE_U8;
    case DataType::kBool:
      return v1::DATA_TYPE_BOOL;
  }
  return v1::DATA_TYPE_UNSPECIFIED;
}

absl::StatusOr<TensorType> TypeOf(std::string_view name, const v1::TensorType& proto) {
  absl::StatusOr<TensorType> type = mtmc::kernel::FromProto(proto);
  if (!type.ok())
    return Invalid("value", name, Concat("has no type: ", base::ToStd(type.status().message())));
  return type;
}

absl::StatusOr<GraphInput> InputFromProto(const v1::GraphInput& proto) {
  GraphInput input{.name = proto.name(),
                   .target = proto.target(),
                   .argument_index = proto.argument_index(),
                   .data = proto.data()};
  switch (proto.kind()) {
    case v1::GraphInput::KIND_USER_INPUT:
      input.kind = GraphInput::Kind::kUserInput;
      break;
    case v1::GraphInput::KIND_PARAMETER:
      input.kind = GraphInput::Kind::kParameter;
      break;
    case v1::GraphInput::KIND_BUFFER:
      input.kind = GraphInput::Kind::kBuffer;
      break;
    case v1::GraphInput::KIND_CONSTANT:
      input.kind = GraphInput::Kind::kConstant;
      break;
    default:
      return Invalid("input", proto.name(), "has no kind");
  }
  absl::StatusOr<TensorType> type = TypeOf(proto.name(), proto.type());
  if (!type.ok()) return type.status();
  input.type = *std::move(type);
  return input;
}

absl::StatusOr<GraphArgument> ArgumentFromProto(const v1::GraphArgument& proto,
                                                const ValueTable& values, bool is_element) {
  GraphArgument argument;
  switch (proto.kind_case()) {
    case v1::GraphArgument::kNone:
      argument.value = NoneArgument{};
      break;
    case v1::GraphArgument::kValue:
      if (!values.Contains(proto.value())) {
        return Invalid("argument", proto.value(), "is not defined before its use");
      }
      argument.value = ValueArgument{proto.value()};
      break;
    case v1::GraphArgument::kIntValue:
      argument.value = int64_t{proto.int_value()};
      break;
    case v1::GraphArgument::kFloatValue:
      argument.value = proto.float_value();
      break;
    case v1::GraphArgument::kBoolValue:
      argument.value = proto.bool_value();
      break;
    case v1::GraphArgument::kStringValue:
      argument.value = proto.string_value();
      break;
    case v1::GraphArgument::kDataType: {
      absl::StatusOr<DataType> type = FromProto(proto.data_type());
      if (!type.ok()) return type.status();
      argument.value = *type;
      break;
    }
    case v1::GraphArgument::kList: {
      if (is_element) return absl::InvalidArgumentError("a list holds a list");
      std::vector<GraphArgument> elements;
      for (const v1::GraphArgument& element : proto.list().elements()) {
        absl::StatusOr<GraphArgument> converted =
            ArgumentFromProto(element, values, /*is_element=*/true);
        if (!converted.ok()) return converted.status();
        elements.push_back(*std::move(converted));
      }
      argument.value = std::move(elements);
      break;
    }
    case v1::GraphArgument::KIND_NOT_SET:
      return absl::InvalidArgumentError("an argument has no kind");
  }
  return argument;
}

absl::Status CheckNodeShape(const v1::GraphNode& proto) {
  if (!IsIdentifier(proto.name())) return Invalid("node", proto.name(), "is not a C identifier");
  if (!IsOperatorName(proto.op())) return Invalid("node", proto.name(), "names no operator");
  if (proto.line() < 0) return Invalid("node", proto.name(), "has a negative line");
  if (proto.results_size() != proto.result_types_size()) {
    return Invalid("node", proto.name(),
                   Concat("has ", proto.results_size(), " results and ", proto.result_types_size(),
                          " result types"));
  }
  if (proto.arguments_size() > kMaxArguments ||
      (proto.argument_names_size() != 0 && proto.argument_names_size() != proto.arguments_size())) {
    return Invalid("node", proto.name(),
                   Concat("has ", proto.arguments_size(), " arguments and ",
                          proto.argument_names_size(), " argument names"));
  }
  // Arguments are found by their names: one that nobody knows would be left out in silence.
  std::set<std::string_view> names;
  for (const std::string& name : proto.argument_names()) {
    if (!IsIdentifier(name)) return Invalid("argument", name, "is not a C identifier");
    if (!names.insert(name).second) return Invalid("argument", name, "is named twice");
  }
  return absl::OkStatus();
}

absl::StatusOr<GraphNode> NodeFromProto(const v1::GraphNode& proto, ValueTable& values) {
  if (absl::Status status = CheckNodeShape(proto); !status.ok()) return status;
  GraphNode node{.name = proto.name(),
                 .op = proto.op(),
                 .line = proto.line(),
                 .module_path = proto.module_path()};
  for (int i = 0; i < proto.arguments_size(); ++i) {
    absl::StatusOr<GraphArgument> argument =
        ArgumentFromProto(proto.arguments(i), values, /*is_element=*/false);
    if (!argument.ok()) {
      return Invalid("node", proto.name(),
                     Concat("is invalid: ", base::ToStd(argument.status().message())));
    }
    if (proto.argument_names_size() != 0) argument->name = proto.argument_names(i);
    node.arguments.push_back(*std::move(argument));
  }
  for (int i = 0; i < proto.results_size(); ++i) {
    if (absl::Status status = values.Define(proto.results(i)); !status.ok()) return status;
    absl::StatusOr<TensorType> type = TypeOf(proto.results(i), proto.result_types(i));
    if (!type.ok()) return type.status();
    node.results.push_back(proto.results(i));
    node.result_types.push_back(*std::move(type));
  }
  return node;
}

absl::StatusOr<GraphOutput> OutputFromProto(const v1::GraphOutput& proto, const Graph& graph) {
  GraphOutput output{.name = proto.name(), .value = proto.value(), .target = proto.target()};
  switch (proto.kind()) {
    case v1::GraphOutput::KIND_USER_OUTPUT:
      output.kind = GraphOutput::Kind::kUserOutput;
      break;
    case v1::GraphOutput::KIND_BUFFER_MUTATION:
      output.kind = GraphOutput::Kind::kBufferMutation;
      break;
    case v1::GraphOutput::KIND_INPUT_MUTATION:
      output.kind = GraphOutput::Kind::kInputMutation;
      break;
    default:
      return Invalid("output", proto.name(), "has no kind");
  }
  if (!IsIdentifier(proto.name())) return Invalid("output", proto.name(), "is not a C identifier");
  if (graph.FindInput(proto.name()) != nullptr) {
    return Invalid("output", proto.name(), "has the name of an input");
  }
  absl::StatusOr<TensorType> type = TypeOf(proto.name(), proto.type());
  if (!type.ok()) return type.status();
  output.type = *std::move(type);
  const TensorType* value_type = graph.FindType(proto.value());
  if (value_type == nullptr) {
    return Invalid("output", proto.name(),
                   Concat("names the unknown value ", Quoted(proto.value())));
  }
  if (*value_type != output.type) {
    return Invalid("output", proto.name(),
                   Concat("is ", ToText(output.type), " but its value is ", ToText(*value_type)));
  }
  return output;
}

void ArgumentToProto(const GraphArgument& argument, v1::GraphArgument& proto) {
  if (std::holds_alternative<NoneArgument>(argument.value)) {
    proto.mutable_none();
  } else if (const auto* value = std::get_if<ValueArgument>(&argument.value)) {
    proto.set_value(value->name);
  } else if (const auto* integer = std::get_if<int64_t>(&argument.value)) {
    proto.set_int_value(*integer);
  } else if (const auto* real = std::get_if<double>(&argument.value)) {
    proto.set_float_value(*real);
  } else if (const auto* boolean = std::get_if<bool>(&argument.value)) {
    proto.set_bool_value(*boolean);
  } else if (const auto* text = std::get_if<std::string>(&argument.value)) {
    proto.set_string_value(*text);
  } else if (const auto* type = std::get_if<DataType>(&argument.value)) {
    proto.set_data_type(ToProto(*type));
  } else {
    v1::GraphArgument::List& list = *proto.mutable_list();
    for (const GraphArgument& element : std::get<std::vector<GraphArgument>>(argument.value)) {
      ArgumentToProto(element, *list.add_elements());
    }
  }
}

void NodeToProto(const GraphNode& node, v1::GraphNode& proto) {
  proto.set_name(node.name);
  proto.set_op(node.op);
  proto.set_line(node.line);
  proto.set_module_path(node.module_path);
  for (const GraphArgument& argument : node.arguments) {
    ArgumentToProto(argument, *proto.add_arguments());
    // A node may come without any.
    if (!argument.name.empty()) proto.add_argument_names(argument.name);
  }
  for (const std::string& result : node.results) proto.add_results(result);
  for (const TensorType& type : node.result_types) *proto.add_result_types() = ToProto(type);
}

}  // namespace

absl::StatusOr<TensorType> FromProto(const v1::TensorType& proto) {
  absl::StatusOr<DataType> data_type = FromProto(proto.data_type());
  if (!data_type.ok()) return data_type.status();
  TensorType type{.data_type = *data_type};
  type.shape.assign(proto.shape().begin(), proto.shape().end());
  for (const int64_t extent : type.shape) {
    if (extent < 0) return absl::InvalidArgumentError(Concat("extent ", extent, " is negative"));
  }
  // The text form is the one place that decides what fits.
  if (!FindTensorType(ToText(type))) {
    return absl::InvalidArgumentError(Concat(ToText(type), " is too large"));
  }
  return type;
}

absl::StatusOr<Graph> FromProto(const v1::Graph& proto) {
  if (proto.nodes_size() > kMaxNodes || proto.inputs_size() > kMaxNodes ||
      proto.outputs_size() > kMaxNodes) {
    return absl::InvalidArgumentError(
        Concat("graph has ", proto.nodes_size(), " nodes, ", proto.inputs_size(), " inputs and ",
               proto.outputs_size(), " outputs; the limit of each is ", kMaxNodes));
  }
  Graph graph{.source = proto.source(), .digest = proto.digest()};
  ValueTable values;
  for (const v1::GraphInput& input : proto.inputs()) {
    if (absl::Status status = values.Define(input.name()); !status.ok()) return status;
    absl::StatusOr<GraphInput> converted = InputFromProto(input);
    if (!converted.ok()) return converted.status();
    graph.inputs.push_back(*std::move(converted));
  }
  for (const v1::GraphNode& node : proto.nodes()) {
    absl::StatusOr<GraphNode> converted = NodeFromProto(node, values);
    if (!converted.ok()) return converted.status();
    graph.nodes.push_back(*std::move(converted));
  }
  std::set<std::string> output_names;
  for (const v1::GraphOutput& output : proto.outputs()) {
    absl::StatusOr<GraphOutput> converted = OutputFromProto(output, graph);
    if (!converted.ok()) return converted.status();
    if (!output_names.insert(output.name()).second) {
      return Invalid("output", output.name(), "is defined twice");
    }
    graph.outputs.push_back(*std::move(converted));
  }
  if (proto.has_result()) {
    absl::StatusOr<Structure> result = ResultFromProto(proto.result(), graph);
    if (!result.ok()) return result.status();
    graph.result = *std::move(result);
  }
  if (proto.arguments_size() > 0) {
    auto arguments = ArgumentsFromProto(proto.arguments(), graph);
    if (!arguments.ok()) return arguments.status();
    graph.arguments = *std::move(arguments);
  }
  return graph;
}

v1::TensorType ToProto(const TensorType& type) {
  v1::TensorType proto;
  proto.set_data_type(ToProto(type.data_type));
  for (const int64_t extent : type.shape) proto.add_shape(extent);
  return proto;
}

v1::Graph ToProto(const Graph& graph) {
  v1::Graph proto;
  for (const GraphInput& input : graph.inputs) {
    v1::GraphInput& converted = *proto.add_inputs();
    converted.set_name(input.name);
    converted.set_kind(static_cast<v1::GraphInput::Kind>(static_cast<int>(input.kind) + 1));
    *converted.mutable_type() = ToProto(input.type);
    converted.set_target(input.target);
    converted.set_argument_index(input.argument_index);
    converted.set_data(input.data);
  }
  for (const GraphNode& node : graph.nodes) NodeToProto(node, *proto.add_nodes());
  for (const GraphOutput& output : graph.outputs) {
    v1::GraphOutput& converted = *proto.add_outputs();
    converted.set_name(output.name);
    converted.set_kind(static_cast<v1::GraphOutput::Kind>(static_cast<int>(output.kind) + 1));
    converted.set_value(output.value);
    *converted.mutable_type() = ToProto(output.type);
    converted.set_target(output.target);
  }
  if (graph.result) StructureToProto(*graph.result, *proto.mutable_result());
  for (const Structure& argument : graph.arguments) {
    StructureToProto(argument, *proto.add_arguments());
  }
  proto.set_source(graph.source);
  proto.set_digest(graph.digest);
  return proto;
}

}  // namespace mtmc::kernel

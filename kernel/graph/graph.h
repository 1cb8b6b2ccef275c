// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernel/graph/structure.h"
#include "kernel/graph/tensor_type.h"

namespace mtmc::kernel {

// A traced PyTorch reference: ATen operations in execution order, in static
// single assignment. Value types throughout; made from `mtmc.v1.Graph` by
// `graph_proto.h`, which also checks it, so that a Graph in hand is valid:
//   1. every value name is a C identifier and defined once, before its uses;
//   2. results and result types are parallel; outputs name existing values;
//   3. shapes have no negative extents;
//   4. what is returned names every user output, and only these and inputs;
//   5. names of a node's arguments, where it has some, are C identifiers, each once;
//   6. arguments name every tensor argument once, where there are any.
struct GraphInput {
  enum class Kind { kUserInput, kParameter, kBuffer, kConstant };
  std::string name;
  Kind kind = Kind::kUserInput;
  TensorType type;
  // Attribute path such as `fc.weight`; empty for a forward argument.
  std::string target;
  int argument_index = 0;
  // Elements of a small constant, little-endian and row-major; else empty.
  std::string data;
};

// Absent optional argument.
struct NoneArgument {};

// Reference to an earlier value.
struct ValueArgument {
  std::string name;
};

struct GraphArgument;

// One argument of an operation. A list holds any kind but lists.
struct GraphArgument {
  std::string name;
  std::variant<NoneArgument, ValueArgument, int64_t, double, bool, std::string, DataType,
               std::vector<GraphArgument>>
      value;
};

struct GraphNode {
  std::string name;
  // With overload, such as `aten::conv2d.default`.
  std::string op;
  std::vector<GraphArgument> arguments;
  std::vector<std::string> results;
  std::vector<TensorType> result_types;
  // Line of the user's file, 1-based; 0 if unknown.
  int line = 0;
  std::string module_path;

  // Argument of that schema name; null when the operator has none.
  const GraphArgument* FindArgument(std::string_view argument_name) const;
};

struct GraphOutput {
  enum class Kind { kUserOutput, kBufferMutation, kInputMutation };
  // Name of the program's `output` directive.
  std::string name;
  Kind kind = Kind::kUserOutput;
  // Graph value that holds the result.
  std::string value;
  TensorType type;
  std::string target;
};

struct Graph {
  std::vector<GraphInput> inputs;
  std::vector<GraphNode> nodes;
  std::vector<GraphOutput> outputs;
  // What `forward` returns; without it, the one user output or a tuple of all.
  std::optional<Structure> result;
  // What it takes, by position; empty where that is not known, and then flat.
  std::vector<Structure> arguments;
  // The user's file.
  std::string source;
  std::string digest;

  // Type of a graph value (input or node result); null when there is none.
  const TensorType* FindType(std::string_view value) const;
  // Node that defines `value`; null for an input or unknown name.
  const GraphNode* FindProducer(std::string_view value) const;
  const GraphInput* FindInput(std::string_view name) const;
  // `result`, or what stands for it.
  Structure ResultOrDefault() const;
};

}  // namespace mtmc::kernel

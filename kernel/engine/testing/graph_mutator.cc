// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/testing/graph_mutator.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace mtmc::kernel {
namespace {

class Mutation {
 public:
  Mutation(v1::Graph& graph, std::mt19937& random) : graph_(graph), random_(random) {}

  void Run() {
    if (graph_.nodes_size() == 0) return;
    switch (Below(4)) {
      case 0:
        return MutateType();
      case 1:
        return MutateNode(AnyNode());
      default:
        return MutateArgument(AnyNode());
    }
  }

  void LetOutputsFollow() {
    for (v1::GraphOutput& output : *graph_.mutable_outputs()) {
      for (const v1::GraphNode& node : graph_.nodes()) {
        for (int i = 0; i < std::min(node.results_size(), node.result_types_size()); ++i) {
          if (node.results(i) == output.value()) *output.mutable_type() = node.result_types(i);
        }
      }
    }
  }

 private:
  int Below(int limit) {
    return static_cast<int>(random_() % static_cast<unsigned>(std::max(limit, 1)));
  }

  v1::GraphNode& AnyNode() { return *graph_.mutable_nodes(Below(graph_.nodes_size())); }

  int64_t AnyInteger() {
    static constexpr int64_t kUsual[] = {0, 1, -1, 2, 3, 4, 7, 16, 64, 1 << 20, 1 << 30};
    static constexpr int64_t kExtreme[] = {int64_t{1} << 31, int64_t{1} << 40,
                                           std::numeric_limits<int64_t>::max(),
                                           std::numeric_limits<int64_t>::min()};
    return Below(4) == 0 ? kExtreme[Below(4)] : kUsual[Below(11)];
  }

  double AnyReal() {
    static constexpr double kReals[] = {0,
                                        1,
                                        -1,
                                        0.5,
                                        1e30,
                                        -1e30,
                                        1e-40,
                                        std::numeric_limits<double>::infinity(),
                                        -std::numeric_limits<double>::infinity(),
                                        std::numeric_limits<double>::quiet_NaN()};
    return kReals[Below(10)];
  }

  void MutateType() {
    std::vector<v1::TensorType*> types;
    for (v1::GraphInput& input : *graph_.mutable_inputs()) types.push_back(input.mutable_type());
    for (v1::GraphNode& node : *graph_.mutable_nodes()) {
      for (v1::TensorType& type : *node.mutable_result_types()) types.push_back(&type);
    }
    if (types.empty()) return;
    v1::TensorType& type = *types[static_cast<size_t>(Below(static_cast<int>(types.size())))];
    const int rank = type.shape_size();
    switch (Below(6)) {
      case 0:
        type.add_shape(Below(8));
        return;
      case 1:
        if (rank > 0) type.mutable_shape()->RemoveLast();
        return;
      case 2:
        return type.set_data_type(static_cast<v1::DataType>(1 + Below(10)));
      default:
        if (rank > 0) type.set_shape(Below(rank), AnyInteger());
    }
  }

  void MutateNode(v1::GraphNode& node) {
    switch (Below(4)) {
      case 0:
        // The operator of another node, which takes other arguments.
        return node.set_op(AnyNode().op());
      case 1:
        if (node.arguments_size() == 0) return;
        if (node.argument_names_size() > 0) node.mutable_argument_names()->RemoveLast();
        return node.mutable_arguments()->RemoveLast();
      case 2:
        if (node.results_size() == 0 || node.result_types_size() == 0) return;
        node.mutable_results()->RemoveLast();
        return node.mutable_result_types()->RemoveLast();
      default:
        node.add_results("r" + std::to_string(random_()));
        *node.add_result_types() =
            node.result_types_size() > 1 ? node.result_types(0) : v1::TensorType();
    }
  }

  void MutateArgument(v1::GraphNode& node) {
    if (node.arguments_size() == 0) return;
    v1::GraphArgument& argument = *node.mutable_arguments(Below(node.arguments_size()));
    if (!argument.has_list() || Below(4) == 0) return Replace(argument);
    v1::GraphArgument::List& list = *argument.mutable_list();
    const int count = list.elements_size();
    if (count == 0 || Below(4) == 0) return Replace(*list.add_elements());
    if (Below(4) == 0) return list.mutable_elements()->RemoveLast();
    Replace(*list.mutable_elements(Below(count)));
  }

  // Mostly by one of its own kind.
  void Replace(v1::GraphArgument& argument) {
    const bool keeps_kind = Below(4) != 0;
    if (keeps_kind && argument.has_int_value()) return argument.set_int_value(AnyInteger());
    if (keeps_kind && argument.has_float_value()) return argument.set_float_value(AnyReal());
    if (keeps_kind && argument.has_bool_value()) {
      return argument.set_bool_value(!argument.bool_value());
    }
    switch (Below(6)) {
      case 0:
        argument.mutable_none();
        return;
      case 1:
        return argument.set_int_value(AnyInteger());
      case 2:
        return argument.set_float_value(AnyReal());
      case 3:
        argument.mutable_list();
        return;
      case 4:
        return argument.set_string_value("ij,jk->ik");
      default:
        if (graph_.inputs_size() > 0) {
          argument.set_value(graph_.inputs(Below(graph_.inputs_size())).name());
        }
    }
  }

  v1::Graph& graph_;
  std::mt19937& random_;
};

}  // namespace

void MutateGraph(v1::Graph& graph, std::mt19937& random) {
  Mutation mutation(graph, random);
  mutation.Run();
  mutation.LetOutputsFollow();
}

}  // namespace mtmc::kernel

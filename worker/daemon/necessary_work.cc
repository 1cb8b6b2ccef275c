// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/necessary_work.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/data_type.h"

namespace mtmc::worker {
namespace {

// What a result says about the operands of the operator that makes it.
enum class Reading {
  // Perhaps nothing.
  kUnknown,
  // Every element of every operand decides about the result.
  kAll,
  // The same, and each element of the result comes from few elements at the same
  // place: nothing can be moved past it by algebra.
  kElementwise,
  // A matrix product.
  kProduct,
  // All of the second operand (the weight); of the first only without strides.
  kWindow,
};

struct Row {
  std::string_view op;
  Reading reading;
};

// Base names of ATen. Left out on purpose: `where`, `masked_fill`, `triu` and
// `tril`, which drop elements; `cumprod`, which can stop at a zero; `clamp` and
// its like, `min` and `max` with an index, pooling, indexing, recurrences.
constexpr auto kRows = std::to_array<Row>({
    {"abs", Reading::kElementwise},
    {"add", Reading::kElementwise},
    {"div", Reading::kElementwise},
    {"elu", Reading::kElementwise},
    {"exp", Reading::kElementwise},
    {"gelu", Reading::kElementwise},
    {"leaky_relu", Reading::kElementwise},
    {"log", Reading::kElementwise},
    {"mish", Reading::kElementwise},
    {"mul", Reading::kElementwise},
    {"neg", Reading::kElementwise},
    {"relu", Reading::kElementwise},
    {"selu", Reading::kElementwise},
    {"sigmoid", Reading::kElementwise},
    {"silu", Reading::kElementwise},
    {"softplus", Reading::kElementwise},
    {"softsign", Reading::kElementwise},
    {"sqrt", Reading::kElementwise},
    {"sub", Reading::kElementwise},
    {"tanh", Reading::kElementwise},
    {"clone", Reading::kElementwise},
    {"contiguous", Reading::kElementwise},
    {"flatten", Reading::kElementwise},
    {"permute", Reading::kElementwise},
    {"reshape", Reading::kElementwise},
    {"squeeze", Reading::kElementwise},
    {"t", Reading::kElementwise},
    {"transpose", Reading::kElementwise},
    {"unsqueeze", Reading::kElementwise},
    {"view", Reading::kElementwise},
    {"_log_softmax", Reading::kAll},
    {"_softmax", Reading::kAll},
    {"amax", Reading::kAll},
    {"amin", Reading::kAll},
    {"batch_norm", Reading::kAll},
    {"cat", Reading::kAll},
    {"cumsum", Reading::kAll},
    {"group_norm", Reading::kAll},
    {"instance_norm", Reading::kAll},
    {"layer_norm", Reading::kAll},
    {"linalg_vector_norm", Reading::kAll},
    {"log_softmax", Reading::kAll},
    {"logsumexp", Reading::kAll},
    {"mean", Reading::kAll},
    {"norm", Reading::kAll},
    {"softmax", Reading::kAll},
    {"stack", Reading::kAll},
    {"std", Reading::kAll},
    {"sum", Reading::kAll},
    {"var", Reading::kAll},
    {"addmm", Reading::kProduct},
    {"baddbmm", Reading::kProduct},
    {"bmm", Reading::kProduct},
    {"linear", Reading::kProduct},
    {"matmul", Reading::kProduct},
    {"mm", Reading::kProduct},
    {"conv1d", Reading::kWindow},
    {"conv2d", Reading::kWindow},
    {"conv3d", Reading::kWindow},
});

// Base name of `aten::conv2d.default`.
std::string_view BaseName(std::string_view op) {
  if (const size_t colons = op.find("::"); colons != op.npos) op.remove_prefix(colons + 2);
  return op.substr(0, op.find('.'));
}

Reading ReadingOf(std::string_view op) {
  const std::string_view base = BaseName(op);
  for (const Row& row : kRows) {
    if (row.op == base) return row.reading;
  }
  return Reading::kUnknown;
}

// Saturates: sizes come from another process.
int64_t Product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::numeric_limits<int64_t>::max() / 4;
  return product;
}

int64_t ElementsOf(const v1::TensorType& type) {
  int64_t elements = 1;
  for (const int64_t extent : type.shape())
    elements = Product(elements, std::max<int64_t>(0, extent));
  return elements;
}

int64_t BytesOf(const v1::TensorType& type) {
  return Product(ElementsOf(type), base::ElementBytes(type.data_type()));
}

// Walks one graph from its outputs to its inputs.
class Walk {
 public:
  explicit Walk(const v1::Graph& graph) : graph_(graph) {
    for (const v1::GraphInput& input : graph.inputs()) types_[input.name()] = &input.type();
    for (const v1::GraphNode& node : graph.nodes()) {
      const int results = std::min(node.results_size(), node.result_types_size());
      for (int i = 0; i < results; ++i) types_[node.results(i)] = &node.result_types(i);
    }
  }

  NecessaryWork Run(bool reads_inputs) {
    NecessaryWork work;
    for (const v1::GraphOutput& output : graph_.outputs()) {
      work.bytes += BytesOf(output.type());
      needs_[output.value()] = {.is_needed = reads_inputs, .is_returned = reads_inputs};
    }
    for (int i = graph_.nodes_size() - 1; i >= 0; --i) Visit(graph_.nodes(i), work);
    for (const v1::GraphInput& input : graph_.inputs()) {
      if (needs_[input.name()].is_needed) work.bytes += BytesOf(input.type());
    }
    return work;
  }

 private:
  // Of one value, which counts as needed when all of its elements are.
  struct Need {
    bool is_needed = false;
    // Element by element up to an output.
    bool is_returned = false;
  };

  void Visit(const v1::GraphNode& node, NecessaryWork& work) {
    if (node.results_size() != 1) return;
    const Need need = needs_[node.results(0)];
    if (!need.is_needed) return;
    switch (ReadingOf(node.op())) {
      case Reading::kUnknown:
        return;
      case Reading::kElementwise:
        if (!IsMask(node)) MarkAll(node, need);
        return;
      case Reading::kAll:
        MarkAll(node, {.is_needed = true});
        return;
      case Reading::kProduct:
        if (need.is_returned && ReadsInputsAlone(node)) work.flops += FlopsOf(node);
        MarkAll(node, {.is_needed = true});
        return;
      case Reading::kWindow:
        MarkWindow(node);
        return;
    }
  }

  void Mark(const std::string& value, Need need) {
    Need& known = needs_[value];
    known.is_needed |= need.is_needed;
    known.is_returned |= need.is_returned;
  }

  void MarkAll(const v1::GraphNode& node, Need need) {
    for (const v1::GraphArgument& argument : node.arguments()) {
      if (argument.has_value()) Mark(argument.value(), need);
      for (const v1::GraphArgument& element : argument.list().elements()) {
        if (element.has_value()) Mark(element.value(), need);
      }
    }
  }

  // input, weight, bias, stride, padding, dilation, groups
  void MarkWindow(const v1::GraphNode& node) {
    for (int i = 0; i < std::min(3, node.arguments_size()); ++i) {
      const bool is_input = i == 0;
      if (!node.arguments(i).has_value() || (is_input && !IsDense(node))) continue;
      Mark(node.arguments(i).value(), {.is_needed = true});
    }
  }

  // Whether a window slides by one element and has no holes.
  static bool IsDense(const v1::GraphNode& node) {
    for (const int position : {3, 5}) {
      if (position >= node.arguments_size()) continue;
      const v1::GraphArgument& argument = node.arguments(position);
      if (argument.has_int_value() && argument.int_value() != 1) return false;
      for (const v1::GraphArgument& element : argument.list().elements()) {
        if (element.int_value() != 1) return false;
      }
    }
    return true;
  }

  // Where one factor of two tensors is zero, the other need not be read.
  static bool IsMask(const v1::GraphNode& node) {
    return BaseName(node.op()) == "mul" && node.arguments_size() > 1 &&
           node.arguments(0).has_value() && node.arguments(1).has_value();
  }

  // Factors that were computed may have a structure that saves work.
  bool ReadsInputsAlone(const v1::GraphNode& node) const {
    return std::all_of(node.arguments().begin(), node.arguments().end(), [&](const auto& argument) {
      return !argument.has_value() ||
             std::any_of(graph_.inputs().begin(), graph_.inputs().end(),
                         [&](const auto& input) { return input.name() == argument.value(); });
    });
  }

  // Result elements times the last extent of the first factor.
  int64_t FlopsOf(const v1::GraphNode& node) const {
    const std::string_view base = BaseName(node.op());
    const int first = base == "addmm" || base == "baddbmm" ? 1 : 0;
    if (first >= node.arguments_size()) return 0;
    const auto type = types_.find(node.arguments(first).value());
    if (type == types_.end() || type->second->shape().empty()) return 0;
    const int64_t depth = type->second->shape(type->second->shape_size() - 1);
    return Product(2 * ElementsOf(node.result_types(0)), std::max<int64_t>(0, depth));
  }

  const v1::Graph& graph_;
  std::map<std::string, const v1::TensorType*, std::less<>> types_;
  std::map<std::string, Need> needs_;
};

}  // namespace

NecessaryWork FindNecessaryWork(const v1::Inspection& inspection) {
  const bool is_sound = inspection.passing_probes().empty() && inspection.flaws().empty();
  return Walk(inspection.graph()).Run(is_sound);
}

}  // namespace mtmc::worker

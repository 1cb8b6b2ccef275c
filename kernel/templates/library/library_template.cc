// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/library/library_template.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "common/base/status_macros.h"
#include "kernel/graph/operators.h"
#include "kernel/graph/text.h"
#include "kernel/templates/pointwise/pointwise_template.h"
#include "kernel/view/group_view.h"

namespace mtmc::kernel {
namespace {

// A graph argument in the plan's notation. Element types are PyTorch's names.
std::optional<CallArgument> FindCallArgument(const GraphArgument& argument);

struct CallValue {
  using Value = decltype(CallArgument::value);

  std::optional<Value> operator()(const NoneArgument&) const { return NoneLiteral{}; }

  std::optional<Value> operator()(const ValueArgument& value) const {
    return CallArgument::TensorName{value.name};
  }

  std::optional<Value> operator()(int64_t value) const { return value; }

  std::optional<Value> operator()(double value) const { return value; }

  std::optional<Value> operator()(bool value) const { return value; }

  std::optional<Value> operator()(const std::string& value) const { return value; }

  std::optional<Value> operator()(DataType value) const { return std::string(ToText(value)); }

  std::optional<Value> operator()(const std::vector<GraphArgument>& list) const {
    std::vector<CallArgument> elements;
    for (const GraphArgument& element : list) {
      std::optional<CallArgument> converted = FindCallArgument(element);
      if (!converted) return std::nullopt;
      converted->keyword.clear();
      elements.push_back(*std::move(converted));
    }
    return elements;
  }
};

std::optional<CallArgument> FindCallArgument(const GraphArgument& argument) {
  std::optional<CallValue::Value> value = std::visit(CallValue{}, argument.value);
  if (!value) return std::nullopt;
  return CallArgument{.keyword = "", .value = *std::move(value)};
}

const GraphNode* FindNode(const GroupView& view) {
  for (const GraphNode& node : view.graph->nodes) {
    if (node.name == view.group->nodes[0]) return &node;
  }
  return nullptr;
}

// The same node with the operator that copies, where its own returns the memory
// of its argument.
GraphNode WithoutView(GraphNode node) {
  const std::string_view name = WithoutOverload(node.op);
  const Operator* known = FindOperator(name);
  if (known != nullptr && !known->copy.empty()) {
    node.op = Concat(known->copy, node.op.substr(name.size()));
  }
  return node;
}

// `aten::conv2d.default` to operator and overload.
std::pair<std::string, std::string> SplitOperator(const std::string& op) {
  const size_t dot = op.find('.');
  if (dot == std::string::npos) return {op, ""};
  return {op.substr(0, dot), op.substr(dot + 1)};
}

// Argument `index` if it is there and of that kind, else null.
template <typename Kind>
const Kind* ArgumentAt(const std::vector<GraphArgument>& arguments, size_t index) {
  return index < arguments.size() ? std::get_if<Kind>(&arguments[index].value) : nullptr;
}

// The matrix whose transpose `value` is; null when it is anything else.
const std::string* FindTransposed(const GroupView& view, const std::string& value) {
  const GraphNode* producer = view.graph->FindProducer(value);
  if (producer == nullptr || producer->result_types[0].shape.size() != 2) return nullptr;
  bool is_transpose = producer->op == "aten::t.default";
  if (producer->op == "aten::permute.default") {
    const auto* dims = ArgumentAt<std::vector<GraphArgument>>(producer->arguments, 1);
    const auto* first = dims ? ArgumentAt<int64_t>(*dims, 0) : nullptr;
    is_transpose = first != nullptr && (*first == 1 || *first == -1);
  } else if (producer->op == "aten::transpose.int") {
    const auto* from = ArgumentAt<int64_t>(producer->arguments, 1);
    const auto* to = ArgumentAt<int64_t>(producer->arguments, 2);
    is_transpose = from != nullptr && to != nullptr && (*from % 2 == 0) != (*to % 2 == 0);
  }
  const auto* source = ArgumentAt<ValueArgument>(producer->arguments, 0);
  return is_transpose && source != nullptr ? &source->name : nullptr;
}

// `x @ w.T` as `aten::linear(x, w)`, which reads the matrix as it lies in memory
// instead of a transposed copy. Any other node as it is.
GraphNode WithoutTransposedCopy(const GroupView& view, const GraphNode& node) {
  const bool is_product = node.op == "aten::matmul.default" || node.op == "aten::mm.default";
  if (!is_product) return node;
  const auto* right = ArgumentAt<ValueArgument>(node.arguments, 1);
  const std::string* source = right == nullptr ? nullptr : FindTransposed(view, right->name);
  if (source == nullptr) return node;
  GraphNode linear = node;
  linear.op = "aten::linear.default";
  linear.arguments[1].value = ValueArgument{*source};
  return linear;
}

// Values that the call reads through a free movement node: the call needs them in memory.
std::vector<std::string> MovedArguments(const GroupView& view, const GraphNode& node) {
  std::vector<std::string> moved;
  const auto visit = [&](const GraphArgument& argument, const auto& self) -> void {
    if (const auto* value = std::get_if<ValueArgument>(&argument.value)) {
      const Loop* loop = FindLoop(view, value->name);
      if (loop != nullptr && loop->node != node.name &&
          std::find(moved.begin(), moved.end(), value->name) == moved.end()) {
        moved.push_back(value->name);
      }
    } else if (const auto* list = std::get_if<std::vector<GraphArgument>>(&argument.value)) {
      for (const GraphArgument& element : *list) self(element, self);
    }
  };
  for (const GraphArgument& argument : node.arguments) visit(argument, visit);
  return moved;
}

struct NoKnobs {};

const KnobTable& NoTable() {
  static const auto* const table = new TypedKnobTable<NoKnobs>(
      {.defaults = [](const GroupView&, const EmitTarget&) { return NoKnobs(); },
       .legality = [](const GroupView&,
                      const EmitTarget&) -> std::function<absl::Status(const NoKnobs&)> {
         return [](const NoKnobs&) { return absl::OkStatus(); };
       },
       .steps = [](const NoKnobs&, const GroupView&,
                   const EmitTarget&) { return std::vector<TypedKnobTable<NoKnobs>::Step>(); }});
  return *table;
}

bool Accepts(const GroupView& view, const EmitTarget& /*target*/) {
  if (view.group->nodes.size() != 1) return false;
  const GraphNode* node = FindNode(view);
  if (node == nullptr) return false;
  const Operator* known = FindOperator(WithoutOverload(node->op));
  return known != nullptr && (known->is_callable() || !known->copy.empty());
}

// Whether tensor cores could compute it.
bool IsProduct(const GroupView& view) {
  return std::any_of(view.loops.begin(), view.loops.end(), [](const Loop* loop) {
    return loop->form == Loop::Form::kContract || loop->form == Loop::Form::kOpaque;
  });
}

std::vector<CallOffer> Offers(const GroupView& view, const EmitTarget& target, bool allow_tf32) {
  const std::string op = SplitOperator(FindNode(view)->op).first;
  std::vector<CallOffer> offers = {
      {.text = Concat("as ", op), .arguments = {{"op", op}, {"precision", "default"}}}};
  if (allow_tf32 && target.dialect == Dialect::kCuda && IsProduct(view)) {
    offers.push_back({.text = Concat("as ", op, " with tf32"),
                      .precision = LibraryCall::Precision::kTf32,
                      .arguments = {{"op", op}, {"precision", "tf32"}}});
  }
  return offers;
}

std::vector<ElementRead> ReadsOf(const GroupView& view, const std::string& value) {
  const TensorType& type = view.nest->types.find(value)->second;
  const ScalarPtr root = Read(value, Axes(static_cast<int>(type.shape.size())), type.data_type);
  return ElementReads(view, root, type.shape);
}

// A kernel that writes the moved value to a buffer of the group.
absl::Status PrintCopy(const GroupView& view, const EmitTarget& target, const std::string& value,
                       Emission& emission) {
  const KernelGroup group{.name = Concat(view.group->name, "_", value),
                          .nodes = {FindLoop(view, value)->node}};
  GroupView copy = view;
  copy.group = &group;
  copy.sweep_plans = nullptr;
  copy.loops.clear();
  for (const Loop* loop : view.loops) {
    if (loop->is_movement && loop->node != view.group->nodes[0]) copy.loops.push_back(loop);
  }
  copy.inputs.clear();
  copy.outputs = {value};
  for (const ElementRead& read : ReadsOf(copy, value)) {
    if (std::find(copy.inputs.begin(), copy.inputs.end(), read.tensor) == copy.inputs.end()) {
      copy.inputs.push_back(read.tensor);
    }
  }
  KernelGroup complete = group;
  complete.knobs = kPointwiseTemplate.knobs().Defaults(copy, target);
  copy.group = &complete;
  MTMC_ASSIGN_OR_RETURN(Emission copied, kPointwiseTemplate.print(copy, target, {}));
  emission.buffers.push_back({.name = value, .type = view.nest->types.find(value)->second});
  for (EmittedStep& step : copied.steps) emission.steps.push_back(std::move(step));
  return absl::OkStatus();
}

absl::StatusOr<Emission> Print(const GroupView& view, const EmitTarget& target,
                               const std::vector<std::string>& /*tuned*/) {
  const GraphNode node = WithoutView(WithoutTransposedCopy(view, *FindNode(view)));
  Emission emission;
  for (const std::string& value : MovedArguments(view, node)) {
    MTMC_RETURN_IF_ERROR(PrintCopy(view, target, value, emission));
  }
  LibraryCall call{.precision = view.group->precision};
  std::tie(call.op, call.overload) = SplitOperator(node.op);
  for (const GraphArgument& argument : node.arguments) {
    std::optional<CallArgument> converted = FindCallArgument(argument);
    if (!converted) {
      return absl::InvalidArgumentError(
          Concat("argument \"", argument.name, "\" of ", node.op, " has no plan form"));
    }
    // The operator itself has no such parameter: the library starts its generator from it.
    if (argument.name == "seed") converted->keyword = argument.name;
    call.arguments.push_back(*std::move(converted));
  }
  for (const std::string& result : node.results) {
    const bool is_read =
        std::find(view.outputs.begin(), view.outputs.end(), result) != view.outputs.end();
    call.results.push_back(is_read ? result : "_");
  }
  emission.steps.push_back({.step = std::move(call)});
  return emission;
}

}  // namespace

const KernelTemplate kLibraryTemplate = {
    .name = "library",
    .is_call = true,
    .accepts = Accepts,
    .knobs = NoTable,
    .starting_knobs = [](const GroupView&, const EmitTarget&) { return Knobs(); },
    .cost = CostOfSweeps,
    .print = Print,
    .offers = Offers,
};

}  // namespace mtmc::kernel

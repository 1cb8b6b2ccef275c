// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/library/library_template.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "common/base/status_macros.h"
#include "kernel/algebra/index_algebra.h"
#include "kernel/graph/operators.h"
#include "kernel/graph/text.h"
#include "kernel/loops/elements.h"
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

// A convolution of kernel/rewrite/channels_last.cc.
bool IsChannelsLast(const GraphNode& node) { return node.op == "mtmc::convolution_channels_last"; }

// Operator and overload that compute the node.
std::pair<std::string, std::string> OperatorOf(const GraphNode& node) {
  if (IsChannelsLast(node)) return {"aten::convolution", "default"};
  return SplitOperator(node.op);
}

// Whether the call can read input and weight where they lie.
bool ReadsMemory(const GroupView& view, const GraphNode& node) {
  for (const char* name : {"input", "weight"}) {
    const GraphArgument* argument = node.FindArgument(name);
    const auto* value =
        argument == nullptr ? nullptr : std::get_if<ValueArgument>(&argument->value);
    if (value == nullptr || FindLoop(view, value->name) != nullptr) return false;
    if (TypeOf(view, value->name).shape.size() < 3) return false;
  }
  return true;
}

// [N, ..., C] seen as [N, C, ...], where it lies.
StridedView WithChannelsFirst(const TensorType& type) {
  const size_t rank = type.shape.size();
  StridedView view{.shape = type.shape};
  view.strides.resize(rank);
  int64_t beyond = 1;
  for (size_t axis = rank; axis-- > 0;) {
    view.strides[axis] = beyond;
    beyond *= std::max<int64_t>(type.shape[axis], 1);
  }
  view.shape = ChannelsFirst(view.shape, rank);
  view.strides = ChannelsFirst(view.strides, rank);
  return view;
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
  if (IsChannelsLast(*node)) return ReadsMemory(view, *node);
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
  const std::string op = OperatorOf(*FindNode(view)).first;
  std::vector<CallOffer> offers = {
      {.text = Concat("as ", op), .arguments = {{"op", op}, {"precision", "default"}}}};
  if (allow_tf32 && target.dialect == Dialect::kCuda && IsProduct(view)) {
    offers.push_back({.text = Concat("as ", op, " with tf32"),
                      .precision = LibraryCall::Precision::kTf32,
                      .arguments = {{"op", op}, {"precision", "tf32"}}});
  }
  return offers;
}

// Calls `visit` with every tensor among the arguments, those in lists too.
template <typename Visit>
void ForEachTensor(std::vector<CallArgument>& arguments, const Visit& visit) {
  for (CallArgument& argument : arguments) {
    if (auto* tensor = std::get_if<CallArgument::TensorName>(&argument.value)) visit(*tensor);
    if (auto* list = std::get_if<std::vector<CallArgument>>(&argument.value)) {
      ForEachTensor(*list, visit);
    }
  }
}

// What an element of a moved value is, in terms of the values that are in memory.
ScalarPtr ElementOf(const GroupView& view, const std::string& value) {
  const TensorType& type = TypeOf(view, value);
  return Read(value, Axes(static_cast<int>(type.shape.size())), type.data_type);
}

// The moved value as elements of another tensor where they lie; absent where strides cannot
// say that: a row that is turned around, or places that are apart in two ways along one axis.
std::optional<CallArgument::TensorName> FindStrided(const GroupView& view,
                                                    const std::string& value) {
  const TensorType& type = TypeOf(view, value);
  const ScalarPtr element = InlineMaps(view, ElementOf(view, value), type.shape);
  if (element->kind != Scalar::Kind::kRead || type.elements() == 0) return std::nullopt;
  const std::vector<ElementRead> reads = ElementReads(view, element, type.shape);
  if (reads.size() != 1 || TypeOf(view, reads[0].tensor).data_type != type.data_type) {
    return std::nullopt;
  }
  const ScalarPtr& offset = reads[0].offset;
  StridedView strided{.shape = type.shape};
  strided.strides.resize(type.shape.size());
  int64_t beyond = 1;
  for (size_t axis = type.shape.size(); axis-- > 0;) {
    const auto along = StrideAlong(offset, static_cast<int>(axis), type.shape);
    if (!along || along->stride < 0) return std::nullopt;
    // Along one element any stride will do, and libraries look for those of a dense tensor.
    strided.strides[axis] = type.shape[axis] == 1 ? beyond : along->stride;
    beyond = std::max<int64_t>(strided.strides[axis] * type.shape[axis], 1);
  }
  const std::vector<ScalarPtr> origin(type.shape.size(), kernel::Index(0));
  const ScalarPtr first = SimplifyIndex(SubstituteAxes(offset, origin), {});
  if (!first->is_literal()) return std::nullopt;
  strided.offset = first->integer;
  return CallArgument::TensorName{.name = reads[0].tensor, .view = std::move(strided)};
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
  const std::vector<int64_t>& extents = TypeOf(view, value).shape;
  for (const ElementRead& read : ElementReads(copy, ElementOf(copy, value), extents)) {
    if (std::find(copy.inputs.begin(), copy.inputs.end(), read.tensor) == copy.inputs.end()) {
      copy.inputs.push_back(read.tensor);
    }
  }
  KernelGroup complete = group;
  complete.knobs = kPointwiseTemplate.knobs().Defaults(copy, target);
  copy.group = &complete;
  MTMC_ASSIGN_OR_RETURN(Emission copied, kPointwiseTemplate.print(copy, target, {}));
  emission.buffers.push_back({.name = value, .type = TypeOf(view, value)});
  for (EmittedStep& step : copied.steps) emission.steps.push_back(std::move(step));
  return absl::OkStatus();
}

// Lets the call read what free movement nodes move: in place where strides say how, or a copy.
absl::Status ReadMoved(const GroupView& view, const EmitTarget& target, const GraphNode& node,
                       LibraryCall& call, Emission& emission) {
  std::map<std::string, CallArgument::TensorName> moved;
  absl::Status status;
  ForEachTensor(call.arguments, [&](CallArgument::TensorName& tensor) {
    const Loop* loop = FindLoop(view, tensor.name);
    if (loop == nullptr || loop->node == node.name) return;
    const auto [known, is_new] = moved.emplace(tensor.name, tensor);
    if (is_new) {
      if (std::optional<CallArgument::TensorName> strided = FindStrided(view, tensor.name)) {
        known->second = *std::move(strided);
      } else {
        status.Update(PrintCopy(view, target, tensor.name, emission));
      }
    }
    tensor = known->second;
  });
  return status;
}

absl::StatusOr<Emission> Print(const GroupView& view, const EmitTarget& target,
                               const std::vector<std::string>& /*tuned*/) {
  const GraphNode node = WithoutView(*FindNode(view));
  Emission emission;
  LibraryCall call{.precision = view.group->precision, .is_channels_last = IsChannelsLast(node)};
  std::tie(call.op, call.overload) = OperatorOf(node);
  for (const GraphArgument& argument : node.arguments) {
    std::optional<CallArgument> converted = FindCallArgument(argument);
    if (!converted) {
      return absl::InvalidArgumentError(
          Concat("argument \"", argument.name, "\" of ", node.op, " has no plan form"));
    }
    // The operator itself has no such parameter: the library starts its generator from it.
    if (argument.name == "seed") converted->keyword = argument.name;
    if (call.is_channels_last && (argument.name == "input" || argument.name == "weight")) {
      auto& tensor = std::get<CallArgument::TensorName>(converted->value);
      tensor.view = WithChannelsFirst(TypeOf(view, tensor.name));
    }
    call.arguments.push_back(*std::move(converted));
  }
  MTMC_RETURN_IF_ERROR(ReadMoved(view, target, node, call, emission));
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

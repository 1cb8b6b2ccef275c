// SPDX-License-Identifier: Apache-2.0
#include "kernel/writer/kernel_writer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/status_macros.h"
#include "kernel/algebra/scalar_key.h"
#include "kernel/graph/text.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/device_functions.h"
#include "kernel/writer/safe_name.h"
#include "kernel/writer/source_comment.h"

namespace mtmc::kernel {

std::string KnobMacro(std::string_view group, std::string_view knob) {
  std::string macro = Concat(group, "_", knob);
  std::transform(macro.begin(), macro.end(), macro.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return macro;
}

KernelWriter::KernelWriter(const GroupView& view, const EmitTarget& target,
                           std::vector<std::string> tuned, const std::string& name)
    : view_(view),
      target_(target),
      text_(target.dialect),
      tuned_(std::move(tuned)),
      name_(SafeName(name, "kernel")),
      scopes_(1) {}

std::string KernelWriter::Knob(std::string_view knob) const {
  if (std::find(tuned_.begin(), tuned_.end(), knob) != tuned_.end()) {
    return KnobMacro(view_.group->name, knob);
  }
  const auto found = view_.group->knobs.find(knob);
  return found == view_.group->knobs.end() ? "1" : std::to_string(found->second);
}

void KernelWriter::AddParameter(const std::string& tensor, bool is_written) {
  AddParameter(tensor, view_.nest->types.find(tensor)->second, is_written);
}

void KernelWriter::AddParameter(const std::string& tensor, const TensorType& type,
                                bool is_written) {
  parameters_.push_back({.tensor = tensor,
                         .name = Fresh(is_written ? tensor + "_out" : tensor),
                         .type = type,
                         .is_written = is_written});
}

ScalarPtr KernelWriter::Axis(const std::string& name, int64_t extent) {
  names_.insert(name);
  axis_names_.push_back(name);
  extents_.push_back(extent);
  return kernel::Axis(static_cast<int>(extents_.size()) - 1);
}

ScalarPtr KernelWriter::Declare(const std::string& name, int64_t extent,
                                std::string_view definition) {
  // A name that a tensor took in spite of the caller is not declared again.
  const bool is_free = reserved_.contains(name) || !names_.contains(name);
  ScalarPtr axis = Axis(is_free ? name : Fresh(name), extent);
  Line(Concat("const ", TypeText(axis), " ", axis_names_.back(), " = ", definition, ";"));
  return axis;
}

ScalarPtr KernelWriter::DeclareThread(int64_t extent, std::string_view block) {
  const std::string wide =
      extent > INT32_MAX ? Concat("(", text_.ComputeType(DataType::kI64), ")") : "";
  return Declare("i", extent,
                 Concat(wide, text_.BlockId(0), " * ", block, " + ", text_.ThreadId(0)));
}

void KernelWriter::Line(std::string_view code) {
  // Preprocessor lines stand at the margin.
  const size_t indent = !code.empty() && code[0] == '#' ? 0 : 2 * scopes_.size();
  body_ += Concat(std::string(indent, ' '), code, "\n");
}

void KernelWriter::Open(std::string_view head) {
  Line(Concat(head, head.empty() ? "{" : " {"));
  scopes_.emplace_back();
}

void KernelWriter::Close() {
  scopes_.pop_back();
  Line("}");
}

void KernelWriter::Comment(std::string_view comment) { Line(Concat("// ", comment)); }

void KernelWriter::Reserve(std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    names_.emplace(name);
    reserved_.emplace(name);
  }
}

std::string KernelWriter::Fresh(std::string_view wish) {
  const std::string base = SafeName(wish, "value");
  std::string name = base;
  for (int suffix = 2; names_.contains(name) || IsTakenName(name); ++suffix) {
    name = Concat(base, "_", suffix);
  }
  names_.insert(name);
  return name;
}

const KernelWriter::Parameter* KernelWriter::FindParameter(const std::string& tensor) const {
  for (const Parameter& parameter : parameters_) {
    if (parameter.tensor == tensor) return &parameter;
  }
  return nullptr;
}

bool KernelWriter::IsReadable(const std::string& tensor) const {
  const Parameter* parameter = FindParameter(tensor);
  return parameter != nullptr && !parameter->is_written;
}

const TensorType& KernelWriter::TypeOf(const std::string& tensor) const {
  if (const Parameter* parameter = FindParameter(tensor)) return parameter->type;
  return view_.nest->types.find(tensor)->second;
}

std::string KernelWriter::ValueKey(const std::string& tensor,
                                   std::span<const ScalarPtr> indices) const {
  return tensor + ';' + KeyOf(OffsetOf(TypeOf(tensor), indices, extents_));
}

const std::string* KernelWriter::FindBound(const std::string& tensor,
                                           const std::string& key) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->values.find(key); found != scope->values.end()) {
      return &found->second;
    }
    if (const auto found = scope->any.find(tensor); found != scope->any.end()) {
      return &found->second;
    }
  }
  return nullptr;
}

const std::string* KernelWriter::FindLocal(const std::string& key) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->locals.find(key);
    if (found != scope->locals.end()) return &found->second;
  }
  return nullptr;
}

void KernelWriter::Bind(const std::string& tensor, std::span<const ScalarPtr> indices,
                        std::string text) {
  scopes_.back().values.insert_or_assign(ValueKey(tensor, indices), std::move(text));
}

void KernelWriter::Bind(const std::string& tensor, std::string text) {
  scopes_.back().any.insert_or_assign(tensor, std::move(text));
}

void KernelWriter::Store(const std::string& tensor, std::span<const ScalarPtr> indices,
                         std::string_view value) {
  const TensorType& type = TypeOf(tensor);
  const std::string offset = Index(OffsetOf(type, indices, extents_));
  Line(text_.Store(FindParameter(tensor)->name, type.data_type, offset, value));
}

void KernelWriter::LoadVector(const std::string& array, const std::string& tensor,
                              const ScalarPtr& offset, int lanes) {
  const DataType type = TypeOf(tensor).data_type;
  names_.insert(array);
  Line(Concat(text_.ComputeType(type), " ", array, "[", lanes, "];"));
  Line(Concat("load_", ToText(type), "x", lanes, "(", array, ", ", FindParameter(tensor)->name,
              " + ", Index(offset), ");"));
}

void KernelWriter::StoreVector(const std::string& tensor, const ScalarPtr& offset,
                               const std::string& array, int lanes) {
  const DataType type = TypeOf(tensor).data_type;
  Line(Concat("store_", ToText(type), "x", lanes, "(", FindParameter(tensor)->name, " + ",
              Index(offset), ", ", array, ");"));
}

absl::StatusOr<EmittedStep> KernelWriter::Finish(const LaunchText& launch) {
  Launch plan{.kernel = name_, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  for (size_t d = 0; d < launch.grid.size(); ++d) {
    MTMC_ASSIGN_OR_RETURN(plan.grid.at(d), IntegerExpression::Parse(launch.grid[d]));
  }
  std::string threads;
  for (size_t d = 0; d < launch.block.size(); ++d) {
    MTMC_ASSIGN_OR_RETURN(plan.block.at(d), IntegerExpression::Parse(launch.block[d]));
    threads += Concat(d > 0 ? " * " : "", launch.block[d]);
  }
  MTMC_ASSIGN_OR_RETURN(plan.shared_bytes, IntegerExpression::Parse(launch.shared_bytes));
  const std::vector<std::string>& nodes = launch.nodes.empty() ? view_.group->nodes : launch.nodes;
  std::string source = SourceComment(*view_.graph, nodes);
  const std::string head = text_.KernelHead(name_, threads) + "(";
  source += Concat(head);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    source +=
        Concat(i > 0 ? ",\n    " : "\n    ",
               text_.Parameter(parameter.name, parameter.type.data_type, parameter.is_written));
    plan.arguments.push_back({parameter.tensor});
  }
  source += Concat(") {\n", body_, "}\n");
  return EmittedStep{
      .step = std::move(plan), .source = std::move(source), .functions = DeviceFunctionsIn(body_)};
}

}  // namespace mtmc::kernel

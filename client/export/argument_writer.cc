// SPDX-License-Identifier: Apache-2.0
#include "client/export/argument_writer.h"

#include <cmath>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/export/python_text.h"
#include "client/export/structure_writer.h"

namespace mtmc::client {
namespace {

using kernel::Structure;

std::string Literal(const Structure& plain) {
  const std::map<std::string, std::string> no_leaves;
  return StructureWriter(no_leaves).Write(plain);
}

}  // namespace

ArgumentWriter::ArgumentWriter(const kernel::Graph& graph)
    : num_arguments_(graph.arguments.size()) {
  for (size_t i = 0; i < graph.arguments.size(); ++i) {
    Add(graph.arguments[i], absl::StrCat("arguments[", i, "]"));
  }
  if (!graph.arguments.empty()) return;
  for (const kernel::GraphInput& input : graph.inputs) {
    if (input.kind != kernel::GraphInput::Kind::kUserInput) continue;
    Add({Structure::InputName{input.name}}, absl::StrCat("arguments[", input.argument_index, "]"));
  }
}

void ArgumentWriter::Add(const Structure& structure, const std::string& place) {
  if (const auto* input = std::get_if<Structure::InputName>(&structure.value)) {
    if (first_.empty()) first_ = place;
    tensors_[input->name] = place;
    return;
  }
  const auto* container = std::get_if<Structure::Container>(&structure.value);
  if (container == nullptr) {
    const auto* real = std::get_if<double>(&structure.value);
    // NaN is equal to nothing.
    if (real != nullptr && std::isnan(*real)) return;
    const bool is_none = std::holds_alternative<Structure::None>(structure.value);
    conditions_.push_back(absl::StrCat(place, is_none ? " is " : " == ", Literal(structure)));
    return;
  }
  conditions_.push_back(absl::StrCat("len(", place, ") == ", container->items.size()));
  for (size_t i = 0; i < container->items.size(); ++i) {
    const std::string key = container->keys.empty() ? absl::StrCat(i) : Literal(container->keys[i]);
    Add(container->items[i], absl::StrCat(place, "[", key, "]"));
  }
}

std::string ArgumentWriter::First() const { return first_.empty() ? "None" : first_; }

std::vector<std::string> ArgumentWriter::Preparation() const {
  if (num_arguments_ == 0) return {};
  std::vector<std::string> lines = {
      absl::StrCat("if keywords or len(arguments) != ", num_arguments_, ":"),
      absl::StrCat("    arguments = _mtmc_positional(Model.forward, self, arguments, keywords, ",
                   num_arguments_, ")")};
  if (conditions_.empty()) return lines;
  const std::string all = absl::StrJoin(conditions_, " and ");
  lines.push_back(absl::StrCat("if not (", all, "):"));
  lines.push_back(absl::StrCat("    raise ValueError(",
                               Quoted(absl::StrCat("the program was made for ", all)), ")"));
  return lines;
}

}  // namespace mtmc::client

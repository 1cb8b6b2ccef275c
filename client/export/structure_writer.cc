// SPDX-License-Identifier: Apache-2.0
#include "client/export/structure_writer.h"

#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/export/python_text.h"

namespace mtmc::client {
namespace {

using kernel::Structure;
using Kind = Structure::Container::Kind;

}  // namespace

std::string StructureWriter::Write(const Structure& structure) {
  if (const auto* output = std::get_if<Structure::OutputName>(&structure.value)) {
    return leaves_.at(output->name);
  }
  if (const auto* input = std::get_if<Structure::InputName>(&structure.value)) {
    return leaves_.at(input->name);
  }
  if (const auto* boolean = std::get_if<bool>(&structure.value)) return *boolean ? "True" : "False";
  if (const auto* integer = std::get_if<int64_t>(&structure.value)) return absl::StrCat(*integer);
  if (const auto* real = std::get_if<double>(&structure.value)) return Real(*real);
  if (const auto* text = std::get_if<std::string>(&structure.value)) return Quoted(*text);
  if (const auto* container = std::get_if<Structure::Container>(&structure.value)) {
    return WriteContainer(*container);
  }
  return "None";
}

std::string StructureWriter::WriteContainer(const Structure::Container& container) {
  const bool has_class = !container.class_name.empty();
  std::vector<std::string> items;
  for (size_t i = 0; i < container.items.size(); ++i) {
    std::string item = Write(container.items[i]);
    if (container.keys.empty()) {
      items.push_back(std::move(item));
    } else if (container.kind == Kind::kDictionary && has_class) {
      items.push_back(absl::StrCat("(", Write(container.keys[i]), ", ", item, ")"));
    } else {
      items.push_back(absl::StrCat(Write(container.keys[i]), ": ", item));
    }
  }
  const std::string all = absl::StrJoin(items, ", ");
  const std::string tuple = absl::StrCat("(", all, items.size() == 1 ? ",)" : ")");
  switch (container.kind) {
    case Kind::kTuple:
      return tuple;
    case Kind::kList:
      return absl::StrCat("[", all, "]");
    case Kind::kDictionary:
      return has_class ? absl::StrCat(Class(container), "([", all, "])")
                       : absl::StrCat("{", all, "}");
    case Kind::kNamedTuple:
      return absl::StrCat(Class(container), "._make(", tuple, ")");
    case Kind::kSequence:
      return absl::StrCat(Class(container), "(", tuple, ")");
    case Kind::kDataclass:
      return absl::StrCat("_mtmc_dataclass(", Class(container), ", {", all, "})");
  }
  return "None";
}

std::string StructureWriter::Class(const Structure::Container& container) {
  const std::string found = container.module.empty()
                                ? container.class_name
                                : absl::StrCat("_mtmc_class(", Quoted(container.module), ", ",
                                               Quoted(container.class_name), ")");
  const auto [entry, is_new] =
      classes_.emplace(found, absl::StrCat("_mtmc_class_", classes_.size()));
  if (is_new) absl::StrAppend(&prepared_, entry->second, " = ", found, "\n");
  return entry->second;
}

}  // namespace mtmc::client

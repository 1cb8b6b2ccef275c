// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/structure_proto.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "kernel/graph/identifier.h"
#include "kernel/graph/text.h"
#include "mtmc/v1/structure.pb.h"

namespace mtmc::kernel {
namespace {

using Container = Structure::Container;

// As the reference process writes at most; parsers of JSON go no deeper than 100 brackets,
// of which a container takes three.
constexpr int kMaxDepth = 16;
// Far above what anybody returns.
constexpr int kMaxValues = 100'000;

absl::Status Invalid(std::string_view problem) {
  return absl::InvalidArgumentError(Concat("what forward takes or returns ", problem));
}

// `Model.Output`: printed into Python, so that nothing else may be in it.
bool IsPath(std::string_view path) {
  while (true) {
    const size_t dot = path.find('.');
    if (!IsIdentifier(path.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    path.remove_prefix(dot + 1);
  }
}

bool IsPlain(const Structure& structure) {
  return !std::holds_alternative<Structure::OutputName>(structure.value) &&
         !std::holds_alternative<Structure::InputName>(structure.value) &&
         !std::holds_alternative<Container>(structure.value);
}

class Reader {
 public:
  Reader(const Graph& graph, bool is_result) : graph_(graph), is_result_(is_result) {}

  absl::StatusOr<Structure> Read(const v1::Structure& proto, int depth) {
    if (++num_values_ > kMaxValues) return Invalid(Concat("has more than ", kMaxValues, " values"));
    switch (proto.kind_case()) {
      case v1::Structure::kOutput:
        return Output(proto.output());
      case v1::Structure::kInput:
        return Input(proto.input());
      case v1::Structure::kNone:
        return Structure{Structure::None()};
      case v1::Structure::kBoolValue:
        return Structure{proto.bool_value()};
      case v1::Structure::kIntValue:
        return Structure{int64_t{proto.int_value()}};
      case v1::Structure::kFloatValue:
        return Structure{proto.float_value()};
      case v1::Structure::kStringValue:
        return Structure{proto.string_value()};
      case v1::Structure::kContainer:
        if (depth == kMaxDepth) return Invalid(Concat("is nested more than ", kMaxDepth, " deep"));
        return ReadContainer(proto.container(), depth + 1);
      case v1::Structure::KIND_NOT_SET:
        break;
    }
    return Invalid("has a value without a kind");
  }

  // Whether every user output, or every tensor argument, was named.
  bool IsComplete() const {
    if (!is_result_) {
      return std::all_of(graph_.inputs.begin(), graph_.inputs.end(), [&](const auto& input) {
        return input.kind != GraphInput::Kind::kUserInput || named_.contains(input.name);
      });
    }
    return std::all_of(graph_.outputs.begin(), graph_.outputs.end(), [&](const auto& output) {
      return output.kind != GraphOutput::Kind::kUserOutput || named_.contains(output.name);
    });
  }

 private:
  absl::StatusOr<Structure> Output(const std::string& name) {
    const bool is_there =
        is_result_ &&
        std::any_of(graph_.outputs.begin(), graph_.outputs.end(), [&](const auto& output) {
          return output.kind == GraphOutput::Kind::kUserOutput && output.name == name;
        });
    if (!is_there) return Invalid(Concat("names the unknown output ", Quoted(name)));
    named_.insert(name);
    return Structure{Structure::OutputName{name}};
  }

  absl::StatusOr<Structure> Input(const std::string& name) {
    const GraphInput* input = graph_.FindInput(name);
    if (input == nullptr || input->kind == GraphInput::Kind::kConstant ||
        (!is_result_ && input->kind != GraphInput::Kind::kUserInput)) {
      return Invalid(Concat("names the unknown input ", Quoted(name)));
    }
    if (!named_.insert(name).second && !is_result_) {
      return Invalid(Concat("has the input ", Quoted(name), " twice"));
    }
    return Structure{Structure::InputName{name}};
  }

  absl::StatusOr<Structure> ReadContainer(const v1::Structure::Container& proto, int depth) {
    if (proto.kind() < v1::Structure::Container::KIND_TUPLE ||
        proto.kind() > v1::Structure::Container::KIND_DATACLASS) {
      return Invalid("has a container without a kind");
    }
    Container container{.kind = static_cast<Container::Kind>(static_cast<int>(proto.kind()) - 1),
                        .module = proto.module(),
                        .class_name = proto.class_name()};
    if (absl::Status status = CheckClass(container); !status.ok()) return status;
    for (const v1::Structure& key : proto.keys()) {
      absl::StatusOr<Structure> read = Read(key, depth);
      if (!read.ok()) return read.status();
      container.keys.push_back(*std::move(read));
    }
    for (const v1::Structure& item : proto.items()) {
      absl::StatusOr<Structure> read = Read(item, depth);
      if (!read.ok()) return read.status();
      container.items.push_back(*std::move(read));
    }
    if (absl::Status status = CheckKeys(container); !status.ok()) return status;
    return Structure{std::move(container)};
  }

  static absl::Status CheckClass(const Container& container) {
    const bool may_lack_class = container.kind == Container::Kind::kDictionary;
    const bool has_none =
        container.kind == Container::Kind::kTuple || container.kind == Container::Kind::kList;
    if (container.class_name.empty()) {
      if (has_none || (may_lack_class && container.module.empty())) return absl::OkStatus();
      return Invalid("has a container without a class");
    }
    if (has_none) return Invalid("has a tuple or list of another class");
    if (!IsPath(container.class_name) || !(container.module.empty() || IsPath(container.module))) {
      return Invalid(Concat("has the class ", Quoted(container.class_name), " of ",
                            Quoted(container.module), ", which is no name in Python"));
    }
    return absl::OkStatus();
  }

  static absl::Status CheckKeys(const Container& container) {
    const bool is_dataclass = container.kind == Container::Kind::kDataclass;
    const bool has_keys = is_dataclass || container.kind == Container::Kind::kDictionary;
    if (container.keys.size() != (has_keys ? container.items.size() : 0)) {
      return Invalid(Concat("has ", container.items.size(), " items and ", container.keys.size(),
                            " keys in one container"));
    }
    for (const Structure& key : container.keys) {
      const auto* name = std::get_if<std::string>(&key.value);
      if (!IsPlain(key) || (is_dataclass && (name == nullptr || !IsIdentifier(*name)))) {
        return Invalid("has a key that is no plain value or no name");
      }
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const bool is_result_;
  std::set<std::string, std::less<>> named_;
  int num_values_ = 0;
};

}  // namespace

absl::StatusOr<Structure> ResultFromProto(const v1::Structure& proto, const Graph& graph) {
  Reader reader(graph, /*is_result=*/true);
  absl::StatusOr<Structure> structure = reader.Read(proto, /*depth=*/0);
  if (structure.ok() && !reader.IsComplete()) return Invalid("leaves an output out");
  return structure;
}

absl::StatusOr<std::vector<Structure>> ArgumentsFromProto(
    const google::protobuf::RepeatedPtrField<v1::Structure>& protos, const Graph& graph) {
  Reader reader(graph, /*is_result=*/false);
  std::vector<Structure> arguments;
  for (const v1::Structure& proto : protos) {
    absl::StatusOr<Structure> argument = reader.Read(proto, /*depth=*/0);
    if (!argument.ok()) return argument.status();
    arguments.push_back(*std::move(argument));
  }
  if (!reader.IsComplete()) return Invalid("leaves an argument out");
  return arguments;
}

void StructureToProto(const Structure& structure, v1::Structure& proto) {
  if (std::holds_alternative<Structure::None>(structure.value)) {
    proto.mutable_none();
  } else if (const auto* output = std::get_if<Structure::OutputName>(&structure.value)) {
    proto.set_output(output->name);
  } else if (const auto* input = std::get_if<Structure::InputName>(&structure.value)) {
    proto.set_input(input->name);
  } else if (const auto* boolean = std::get_if<bool>(&structure.value)) {
    proto.set_bool_value(*boolean);
  } else if (const auto* integer = std::get_if<int64_t>(&structure.value)) {
    proto.set_int_value(*integer);
  } else if (const auto* real = std::get_if<double>(&structure.value)) {
    proto.set_float_value(*real);
  } else if (const auto* text = std::get_if<std::string>(&structure.value)) {
    proto.set_string_value(*text);
  } else {
    const auto& container = std::get<Container>(structure.value);
    v1::Structure::Container& converted = *proto.mutable_container();
    converted.set_kind(
        static_cast<v1::Structure::Container::Kind>(static_cast<int>(container.kind) + 1));
    converted.set_module(container.module);
    converted.set_class_name(container.class_name);
    for (const Structure& key : container.keys) StructureToProto(key, *converted.add_keys());
    for (const Structure& item : container.items) StructureToProto(item, *converted.add_items());
  }
}

}  // namespace mtmc::kernel

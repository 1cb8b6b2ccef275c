// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/structure_proto.h"

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "mtmc/v1/structure.pb.h"

namespace mtmc::kernel {
namespace {

using Catch::Matchers::Contains;

Graph MakeGraph() {
  Graph graph;
  graph.inputs = {{.name = "x"}, {.name = "c", .kind = GraphInput::Kind::kConstant}};
  graph.outputs = {{.name = "y0", .value = "x"},
                   {.name = "y1", .value = "x"},
                   {.name = "n", .kind = GraphOutput::Kind::kBufferMutation, .value = "x"}};
  return graph;
}

v1::Structure Parse(const std::string& text) {
  v1::Structure proto;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &proto));
  return proto;
}

// Draws trees that name both outputs.
class Draws {
 public:
  explicit Draws(unsigned seed) : generator_(seed) {}

  v1::Structure Whole() {
    v1::Structure proto;
    v1::Structure::Container& root = *proto.mutable_container();
    root.set_kind(v1::Structure::Container::KIND_TUPLE);
    root.add_items()->set_output("y0");
    root.add_items()->set_output("y1");
    *root.add_items() = Any(1);
    return proto;
  }

 private:
  int Below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(generator_); }

  v1::Structure Plain() {
    v1::Structure proto;
    const int kind = Below(5);
    if (kind == 0) proto.mutable_none();
    if (kind == 1) proto.set_bool_value(Below(2) == 0);
    if (kind == 2) proto.set_int_value(Below(1000) - 500);
    if (kind == 3) proto.set_float_value(Below(1000) / 7.0);
    if (kind == 4) proto.set_string_value("word" + std::to_string(Below(9)));
    return proto;
  }

  v1::Structure Any(int depth) {
    v1::Structure proto;
    const int kind = Below(depth > 10 ? 3 : 8);
    if (kind == 0) return Plain();
    if (kind == 1) proto.set_input("x");
    if (kind == 2) proto.set_output(Below(2) == 0 ? "y0" : "y1");
    if (kind < 3) return proto;
    v1::Structure::Container& container = *proto.mutable_container();
    container.set_kind(static_cast<v1::Structure::Container::Kind>(1 + Below(6)));
    const bool has_class = container.kind() > v1::Structure::Container::KIND_LIST;
    if (has_class) container.set_class_name("Model.Output");
    if (has_class && Below(2) == 0) container.set_module("torch.return_types");
    const bool is_dataclass = container.kind() == v1::Structure::Container::KIND_DATACLASS;
    for (int i = Below(4); i > 0; --i) {
      *container.add_items() = Any(depth + 1);
      if (is_dataclass) container.add_keys()->set_string_value("f" + std::to_string(i));
      if (container.kind() == v1::Structure::Container::KIND_DICTIONARY) {
        *container.add_keys() = Plain();
      }
    }
    return proto;
  }

  std::mt19937 generator_;
};

TEST_CASE("Drawn structures survive the way to their proto", "[graph]") {
  const Graph graph = MakeGraph();
  const unsigned seed = std::random_device()();
  Draws draws(seed);
  for (int i = 0; i < 200; ++i) {
    const v1::Structure proto = draws.Whole();
    INFO("seed " << seed << ": " << proto.DebugString());

    const absl::StatusOr<Structure> structure = ResultFromProto(proto, graph);

    REQUIRE(structure.ok());
    v1::Structure copy;
    StructureToProto(*structure, copy);
    CHECK(copy.DebugString() == proto.DebugString());
  }
}

TEST_CASE("A structure that cannot be is refused", "[graph]") {
  struct Case {
    std::string text;
    std::string expected;
  };

  const std::string both = "items { output: 'y0' } items { output: 'y1' }";
  const auto c = GENERATE_COPY(values<Case>({
      {"output: 'y0'", "leaves an output out"},
      {"output: 'n'", "unknown output"},
      {"input: 'c'", "unknown input"},
      {"input: 'y0'", "unknown input"},
      {"", "without a kind"},
      {"container { " + both + " }", "without a kind"},
      {"container { kind: KIND_NAMED_TUPLE " + both + " }", "without a class"},
      {"container { kind: KIND_DICTIONARY module: 'm' " + both + " }", "without a class"},
      {"container { kind: KIND_LIST class_name: 'A' " + both + " }", "another class"},
      {"container { kind: KIND_SEQUENCE class_name: 'f()' " + both + " }", "no name in Python"},
      {"container { kind: KIND_SEQUENCE class_name: 'A' module: 'm;' " + both + " }", "no name"},
      {"container { kind: KIND_DICTIONARY " + both + " }", "2 items and 0 keys"},
      {"container { kind: KIND_TUPLE keys { none {} } " + both + " }", "2 items and 1 keys"},
      {"container { kind: KIND_DICTIONARY keys { output: 'y0' } items { output: 'y1' } }",
       "no plain value"},
      {"container { kind: KIND_DATACLASS class_name: 'A' keys { string_value: 'a b' } "
       "items { output: 'y1' } }",
       "no name"},
  }));
  INFO(c.text);

  const absl::StatusOr<Structure> structure = ResultFromProto(Parse(c.text), MakeGraph());

  REQUIRE(structure.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(structure.status().message()), Contains(c.expected));
}

TEST_CASE("A structure without end is refused", "[graph]") {
  v1::Structure proto;
  v1::Structure* end = &proto;
  for (int i = 0; i < 17; ++i) {
    end->mutable_container()->set_kind(v1::Structure::Container::KIND_LIST);
    end = end->mutable_container()->add_items();
  }
  end->set_output("y0");

  CHECK_THAT(std::string(ResultFromProto(proto, MakeGraph()).status().message()),
             Contains("more than 16 deep"));
}

TEST_CASE("Arguments name each tensor argument once", "[graph]") {
  struct Case {
    std::vector<std::string> texts;
    std::string expected;
  };

  const auto c = GENERATE(values<Case>({
      {{"int_value: 3", "container { kind: KIND_LIST items { input: 'x' } }"}, ""},
      {{"int_value: 3"}, "leaves an argument out"},
      {{"input: 'x'", "input: 'x'"}, "\"x\" twice"},
      {{"input: 'x'", "output: 'y0'"}, "unknown output"},
      {{"input: 'x'", "input: 'w'"}, "unknown input"},
  }));
  INFO(c.expected);
  Graph graph = MakeGraph();
  graph.inputs.push_back({.name = "w", .kind = GraphInput::Kind::kParameter});
  google::protobuf::RepeatedPtrField<v1::Structure> protos;
  for (const std::string& text : c.texts) *protos.Add() = Parse(text);

  const auto arguments = ArgumentsFromProto(protos, graph);

  CHECK(arguments.ok() == c.expected.empty());
  CHECK_THAT(std::string(arguments.status().message()), Contains(c.expected));
}

TEST_CASE("A graph without a structure returns its outputs", "[graph]") {
  Graph graph = MakeGraph();
  v1::Structure proto;

  StructureToProto(graph.ResultOrDefault(), proto);
  CHECK(ResultFromProto(proto, graph).ok());
  CHECK(proto.container().items_size() == 2);

  graph.outputs.erase(graph.outputs.begin());
  CHECK(std::get<Structure::OutputName>(graph.ResultOrDefault().value).name == "y1");
}

}  // namespace
}  // namespace mtmc::kernel

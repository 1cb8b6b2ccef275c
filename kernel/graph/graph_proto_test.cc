// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/graph_proto.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <catch2/catch.hpp>
#include <functional>

#include "mtmc/v1/graph.pb.h"

namespace mtmc::kernel {
namespace {

using Catch::Matchers::Contains;

v1::Graph MakeProto() {
  v1::Graph proto;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        inputs {
          name: "x"
          kind: KIND_USER_INPUT
          type {
            data_type: DATA_TYPE_F32
            shape: [ 4, 8 ]
          }
        }
        inputs {
          name: "w"
          kind: KIND_PARAMETER
          type {
            data_type: DATA_TYPE_F32
            shape: [ 2, 8 ]
          }
          target: "fc.weight"
        }
        nodes {
          name: "linear"
          op: "aten::linear.default"
          line: 3
          module_path: "fc"
          arguments { value: "x" }
          arguments { value: "w" }
          arguments { none {} }
          argument_names: "input"
          argument_names: "weight"
          argument_names: "bias"
          results: "linear"
          result_types {
            data_type: DATA_TYPE_F32
            shape: [ 4, 2 ]
          }
        }
        nodes {
          name: "amax"
          op: "aten::amax.default"
          line: 3
          arguments { value: "linear" }
          arguments { list { elements { int_value: -1 } } }
          arguments { bool_value: true }
          arguments { float_value: 0.5 }
          arguments { string_value: "none" }
          arguments { data_type: DATA_TYPE_BOOL }
          argument_names: [ "self", "dim", "keepdim", "a", "b", "dtype" ]
          results: "amax"
          result_types {
            data_type: DATA_TYPE_F32
            shape: [ 4, 1 ]
          }
        }
        outputs {
          name: "out_0"
          kind: KIND_USER_OUTPUT
          value: "amax"
          type {
            data_type: DATA_TYPE_F32
            shape: [ 4, 1 ]
          }
        }
        result {
          container {
            kind: KIND_LIST
            items { output: "out_0" }
            items { input: "x" }
          }
        }
        arguments { input: "x" }
        arguments { float_value: 0.5 }
        source: "a\nb\n  x = self.fc(x)\n"
        digest: "d"
      )pb",
      &proto));
  return proto;
}

TEST_CASE("Graph survives the way to its proto", "[graph]") {
  v1::Graph proto = MakeProto();
  SECTION("as it was traced") {}
  SECTION("of a node whose arguments have no names") {
    proto.mutable_nodes(0)->clear_argument_names();
  }

  const absl::StatusOr<Graph> graph = FromProto(proto);

  REQUIRE(graph.ok());
  const v1::Graph copy = ToProto(*graph);
  CHECK(copy.DebugString() == proto.DebugString());
}

TEST_CASE("Graph finds values, producers and arguments by name", "[graph]") {
  const Graph graph = FromProto(MakeProto()).value();

  CHECK(ToText(*graph.FindType("linear")) == "f32[4,2]");
  CHECK(ToText(*graph.FindType("w")) == "f32[2,8]");
  CHECK(graph.FindProducer("amax")->op == "aten::amax.default");
  CHECK(std::get<bool>(graph.FindProducer("amax")->FindArgument("keepdim")->value));
  CHECK(graph.FindProducer("x") == nullptr);
  CHECK(graph.FindType("nothing") == nullptr);
}

TEST_CASE("FromProto refuses a graph that breaks a rule", "[graph]") {
  struct Case {
    std::string expected;
    std::function<void(v1::Graph&)> change;
  };

  const auto c = GENERATE(values<Case>({
      {"not a C identifier", [](v1::Graph& g) { g.mutable_inputs(0)->set_name("a b"); }},
      {"defined twice", [](v1::Graph& g) { g.mutable_inputs(1)->set_name("x"); }},
      {"has no kind", [](v1::Graph& g) { g.mutable_inputs(0)->clear_kind(); }},
      {"element type", [](v1::Graph& g) { g.mutable_inputs(0)->clear_type(); }},
      {"extent -1", [](v1::Graph& g) { g.mutable_inputs(0)->mutable_type()->set_shape(0, -1); }},
      {"too large",
       [](v1::Graph& g) { g.mutable_inputs(0)->mutable_type()->set_shape(0, INT64_MAX); }},
      {"before its use",
       [](v1::Graph& g) { g.mutable_nodes(0)->mutable_arguments(0)->set_value("amax"); }},
      {"no kind", [](v1::Graph& g) { g.mutable_nodes(0)->mutable_arguments(0)->Clear(); }},
      {"result types", [](v1::Graph& g) { g.mutable_nodes(0)->add_results("more"); }},
      {"argument names", [](v1::Graph& g) { g.mutable_nodes(0)->add_argument_names("more"); }},
      {"not a C identifier",
       [](v1::Graph& g) { g.mutable_nodes(0)->set_argument_names(0, "bia\x14s"); }},
      {"named twice", [](v1::Graph& g) { g.mutable_nodes(0)->set_argument_names(0, "weight"); }},
      {"names no operator", [](v1::Graph& g) { g.mutable_nodes(0)->clear_op(); }},
      {"names no operator", [](v1::Graph& g) { g.mutable_nodes(0)->set_op("aten::sum.um.dim"); }},
      {"negative line", [](v1::Graph& g) { g.mutable_nodes(0)->set_line(-1); }},
      {"holds a list",
       [](v1::Graph& g) {
         g.mutable_nodes(1)
             ->mutable_arguments(1)
             ->mutable_list()
             ->mutable_elements(0)
             ->mutable_list();
       }},
      {"unknown output",
       [](v1::Graph& g) {
         g.mutable_result()->mutable_container()->mutable_items(0)->set_output("y");
       }},
      {"argument out", [](v1::Graph& g) { g.mutable_arguments(0)->set_int_value(1); }},
      {"name of an input", [](v1::Graph& g) { g.mutable_outputs(0)->set_name("x"); }},
      {"unknown value", [](v1::Graph& g) { g.mutable_outputs(0)->set_value("z"); }},
      {"but its value is", [](v1::Graph& g) { g.mutable_outputs(0)->set_value("linear"); }},
      {"defined twice", [](v1::Graph& g) { *g.add_outputs() = g.outputs(0); }},
  }));
  INFO(c.expected);
  v1::Graph proto = MakeProto();
  c.change(proto);

  const absl::StatusOr<Graph> graph = FromProto(proto);

  REQUIRE(graph.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(graph.status().message()), Contains(c.expected));
}

}  // namespace
}  // namespace mtmc::kernel

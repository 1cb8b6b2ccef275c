// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernel/engine/engine.h"
#include "kernel/engine/testing/small_graph.h"
#include "kernel/program/checker.h"
#include "kernel/program/interface.h"
#include "kernel/program/parser.h"

namespace mtmc::kernel {
namespace {

using testing::CudaOptions;
using testing::Has;
using testing::kSource;
using testing::MakeGraph;
using testing::TextsOf;
using testing::ValueOf;

// y = sum over the columns of (x @ w) * 2
Graph MakeSummedProduct() {
  Graph graph = MakeGraph();
  graph.nodes.resize(2);
  const TensorType sums{.shape = {64, 1}};
  graph.nodes.push_back({"sum",
                         "aten::sum.dim_IntList",
                         {ValueOf("self", "mul"), {"dim", int64_t{1}}, {"keepdim", true}},
                         {"sum"},
                         {sums},
                         5,
                         ""});
  graph.outputs = {{.name = "y", .value = "sum", .type = sums}};
  return graph;
}

TEST_CASE("Algebra is an action, stays in the schedule and is told in the program", "[engine]") {
  const Graph graph = MakeSummedProduct();
  const std::string text = "simplify sum: reduce before multiplying (lines 4-5)";
  const EngineOptions options = CudaOptions(StartMapping::kEager);
  const auto start = CreateProgram(graph, options);
  REQUIRE(start.ok());
  CHECK(ListActions(graph, start->schedule, options)->front().text == text);

  const auto simplified = ApplyAction(graph, start->schedule, text, options);

  REQUIRE(simplified.ok());
  CHECK(simplified->schedule.starts_with("rewrite reduce_first node=sum\ngroup "));
  CHECK(simplified->text.find("// Simplified at sum: reduce before multiplying") !=
        std::string::npos);
  const ParseResult parsed = ParseProgram(simplified->text);
  REQUIRE(parsed.program.has_value());
  const CheckLimits limits{.allowed_calls = {"aten::matmul"}};
  CHECK(CheckProgram(*parsed.program, FromGraph(graph), limits, {}).empty());
  CHECK(PrintSchedule(graph, simplified->schedule, options)->text == simplified->text);
  // What follows is made of the rewritten graph, in which nothing is left to simplify.
  const auto actions = ListActions(graph, simplified->schedule, options);
  REQUIRE(actions.ok());
  for (const EngineAction& action : *actions) {
    CHECK(action.type != "simplify");
    if (action.type == "stop") continue;
    const auto next = ApplyAction(graph, simplified->schedule, action.text, options);
    INFO(action.text);
    REQUIRE(next.ok());
    CHECK(next->schedule.starts_with("rewrite reduce_first node=sum\n"));
  }
}

GraphArgument IntsOf(const std::string& name, const std::vector<int64_t>& values) {
  std::vector<GraphArgument> list;
  list.reserve(values.size());
  for (const int64_t value : values) list.push_back({"", value});
  return {.name = name, .value = std::move(list)};
}

// A transposed convolution of 5 x 5 places by weights of 3 x 3, with stride 2.
Graph MakeTransposed() {
  Graph graph{.source = kSource};
  graph.inputs = {{.name = "x", .type = {.shape = {2, 64, 5, 5}}},
                  {.name = "w", .type = {.shape = {64, 32, 3, 3}}}};
  const TensorType y{.shape = {2, 32, 11, 11}};
  graph.nodes = {{"conv",
                  "aten::conv_transpose2d.input",
                  {ValueOf("input", "x"), ValueOf("weight", "w"), IntsOf("stride", {2, 2})},
                  {"conv"},
                  {y},
                  3,
                  ""}};
  graph.outputs = {{.name = "y", .value = "conv", .type = y}};
  return graph;
}

TEST_CASE("Algebra on convolutions may keep products in FP32 throughout", "[engine]") {
  const Graph graph = MakeTransposed();
  const std::string text = "simplify conv: a transposed convolution as a plain one";
  const std::string ieee = text + ", with products in FP32 throughout (line 3)";
  const auto is_ieee = [](const EngineProgram& program) {
    return program.text.find("precision=ieee") != std::string::npos;
  };

  const EngineOptions options = CudaOptions(StartMapping::kEager);
  const auto start = CreateProgram(graph, options);
  REQUIRE(start.ok());
  CHECK(Has(TextsOf(ListActions(graph, start->schedule, options).value()), ieee));
  CHECK_FALSE(is_ieee(ApplyAction(graph, start->schedule, text + " (line 3)", options).value()));
  CHECK(is_ieee(ApplyAction(graph, start->schedule, ieee, options).value()));

  // What is so already stays so, and is not asked twice.
  const EngineOptions in_fp32 = CudaOptions(StartMapping::kIeee);
  const auto exact = CreateProgram(graph, in_fp32);
  REQUIRE(exact.ok());
  CHECK_FALSE(Has(TextsOf(ListActions(graph, exact->schedule, in_fp32).value()), ieee));
  CHECK(is_ieee(ApplyAction(graph, exact->schedule, text + " (line 3)", in_fp32).value()));
}

TEST_CASE("A rewrite that does not apply is refused by name", "[engine]") {
  const std::string rewrite = GENERATE(
      as<std::string>{}, "rewrite reduce_first node=mul\n", "rewrite reduce_first node=conv\n",
      "rewrite magic node=sum\n", "rewrite reduce_first node=sum\nrewrite reduce_first node=sum\n");
  CAPTURE(rewrite);

  const auto printed = PrintSchedule(MakeSummedProduct(),
                                     rewrite + "group sum template=row nodes=sum\n", CudaOptions());

  CHECK(absl::IsInvalidArgument(printed.status()));
  CHECK(printed.status().message().find("rewrite") != std::string_view::npos);
}

}  // namespace
}  // namespace mtmc::kernel

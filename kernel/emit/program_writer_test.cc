// SPDX-License-Identifier: Apache-2.0
#include "kernel/emit/program_writer.h"

#include <catch2/catch.hpp>

namespace mtmc::kernel {
namespace {

GraphArgument ValueOf(const std::string& name, const std::string& value) {
  return {.name = name, .value = ValueArgument{value}};
}

// y = relu(x.t()) + bias
Graph MakeGraph() {
  const TensorType x{.shape = {64, 32}};
  const TensorType t{.shape = {32, 64}};
  Graph graph{.source = "y = relu(x.t()) + bias"};
  graph.inputs = {{.name = "x", .type = x}, {.name = "bias", .type = {.shape = {64}}}};
  graph.nodes = {{"t", "aten::t.default", {ValueOf("self", "x")}, {"t"}, {t}, 1, ""},
                 {"relu", "aten::relu.default", {ValueOf("self", "t")}, {"relu"}, {t}, 1, ""},
                 {"add",
                  "aten::add.Tensor",
                  {ValueOf("self", "relu"), ValueOf("other", "bias")},
                  {"add"},
                  {t},
                  1,
                  ""}};
  graph.outputs = {{.name = "y", .value = "add", .type = t}};
  return graph;
}

absl::StatusOr<std::string> Write(const Graph& graph, const std::string& schedule,
                                  Dialect dialect) {
  const LoopNest nest = *LowerToLoops(graph);
  const NestIndex index(graph, nest);
  return WriteProgram(graph, nest, index, *ParseSchedule(schedule), {.dialect = dialect});
}

TEST_CASE("A view is read through, never copied", "[emit]") {
  const auto text =
      Write(MakeGraph(), "group relu_add template=pointwise nodes=relu,add\n", Dialect::kCuda);

  REQUIRE(text.ok());
  CHECK(text->find("buffer") == std::string::npos);
  CHECK(text->find("x[") != std::string::npos);
}

TEST_CASE("Both dialects print the same statements", "[emit]") {
  const std::string schedule = "group relu_add template=pointwise nodes=relu,add\n";
  const auto cuda = Write(MakeGraph(), schedule, Dialect::kCuda);
  const auto opencl = Write(MakeGraph(), schedule, Dialect::kOpenCl);
  REQUIRE(cuda.ok());
  REQUIRE(opencl.ok());

  for (const std::string line :
       {"const float add = relu + bias_i;", "add_out[block * 256 + thread] = add;"}) {
    CAPTURE(line, *cuda);
    CHECK(cuda->find(line) != std::string::npos);
    CHECK(opencl->find(line) != std::string::npos);
  }
}

TEST_CASE("A wide kernel moves contiguous tensors as vectors", "[emit]") {
  Graph graph = MakeGraph();
  graph.inputs[0].type.shape = {32, 64};
  graph.nodes.erase(graph.nodes.begin());
  graph.nodes[0].arguments = {ValueOf("self", "x")};

  const auto text =
      Write(graph, "group relu_add template=pointwise nodes=relu,add vector=4\n", Dialect::kCuda);

  REQUIRE(text.ok());
  CHECK(text->find("load_f32x4(x_v, x + ") != std::string::npos);
  CHECK(text->find("store_f32x4(add_out + ") != std::string::npos);
}

TEST_CASE("Whole data wraps around as PyTorch's does", "[emit]") {
  Graph graph = MakeGraph();
  const TensorType type{DataType::kI32, {64, 64}};
  graph.inputs = {{.name = "x", .type = type}};
  graph.nodes = {{"sub",
                  "aten::sub.Tensor",
                  {ValueOf("self", "x"), ValueOf("other", "x")},
                  {"sub"},
                  {type},
                  1,
                  ""}};
  graph.outputs = {{.name = "y", .value = "sub", .type = type}};
  const std::string schedule = "group sub template=pointwise nodes=sub\n";

  const auto cuda = Write(graph, schedule, Dialect::kCuda);
  const auto opencl = Write(graph, schedule, Dialect::kOpenCl);

  REQUIRE((cuda.ok() && opencl.ok()));
  CHECK(cuda->find("= (int)((unsigned int)x_i - (unsigned int)x_i);") != std::string::npos);
  CHECK(opencl->find("= (int)((uint)x_i - (uint)x_i);") != std::string::npos);
}

TEST_CASE("A narrow whole number wraps around before the next operator reads it", "[emit]") {
  Graph graph = MakeGraph();
  const TensorType bytes{DataType::kU8, {64}};
  const TensorType floats{DataType::kF32, {64}};
  graph.inputs = {{.name = "x", .type = bytes}};
  graph.nodes = {{"mul",
                  "aten::mul.Tensor",
                  {ValueOf("self", "x"), ValueOf("other", "x")},
                  {"mul"},
                  {bytes},
                  1,
                  ""},
                 {"exp", "aten::exp.default", {ValueOf("self", "mul")}, {"exp"}, {floats}, 1, ""}};
  graph.outputs = {{.name = "y", .value = "exp", .type = floats}};

  const auto text =
      Write(graph, "group mul_exp template=pointwise nodes=mul,exp\n", Dialect::kOpenCl);

  REQUIRE(text.ok());
  CAPTURE(*text);
  CHECK(text->find("(uchar)(") != std::string::npos);
}

TEST_CASE("WriteProgram refuses a schedule that leaves an output out", "[emit]") {
  const auto text =
      Write(MakeGraph(), "group relu template=pointwise nodes=relu\n", Dialect::kCuda);

  CHECK(text.status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("A tensor named like a variable of the kernel does not clash", "[emit]") {
  Graph graph = MakeGraph();
  graph.inputs[1].name = "i";
  graph.nodes[2].arguments[1] = ValueOf("other", "i");

  const auto text =
      Write(graph, "group relu_add template=pointwise nodes=relu,add\n", Dialect::kCuda);

  REQUIRE(text.ok());
  CHECK(text->find("const float* __restrict__ i_2") != std::string::npos);
}

}  // namespace
}  // namespace mtmc::kernel

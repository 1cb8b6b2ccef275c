// SPDX-License-Identifier: Apache-2.0
#include "client/export/forward_writer.h"

#include <catch2/catch.hpp>

#include "kernel/program/parser.h"

namespace mtmc::client {
namespace {

using kernel::Graph;
using kernel::GraphInput;
using kernel::GraphOutput;
using kernel::TensorType;

// y = f(x, w) with a model buffer that the forward changes.
Graph MakeGraph() {
  const TensorType type{.shape = {8}};
  Graph graph;
  graph.inputs = {
      {.name = "x", .kind = GraphInput::Kind::kUserInput, .type = type},
      {.name = "w", .kind = GraphInput::Kind::kParameter, .type = type, .target = "fc.w"}};
  graph.outputs = {
      {.name = "y", .kind = GraphOutput::Kind::kUserOutput, .value = "y", .type = type},
      {.name = "m",
       .kind = GraphOutput::Kind::kBufferMutation,
       .value = "m",
       .type = type,
       .target = "bn.mean"}};
  return graph;
}

constexpr char kProgram[] = R"(//@ mtmc 1 cuda
//@ input x f32[8]
//@ weight w f32[8]
//@ buffer h f32[8]
//@ output y f32[8]
//@ output m f32[8]
//@ tune B = 4 8
//@ launch scale grid=(ceil_div(8, B)) block=(B) args=(x, w, h, 8, 0.5)
//@ call aten::softmax(h, 0) -> y
//@ call aten::mul(h, 2) -> m precision=tf32
extern "C" __global__ void scale(const float* x, const float* w, float* h, long long n, float s) {
  h[threadIdx.x] = x[threadIdx.x] * w[threadIdx.x] * s;
}
)";

std::string Forward(const std::string& text, const kernel::Bindings& bindings) {
  const kernel::ParseResult parsed = kernel::ParseProgram(text);
  REQUIRE(parsed.program);
  const auto forward = WriteForward(*parsed.program, MakeGraph(), bindings);
  REQUIRE(forward.ok());
  return *forward;
}

bool Has(const std::string& text, const std::string& part) {
  CAPTURE(text, part);
  return text.find(part) != std::string::npos;
}

TEST_CASE("WriteForward evaluates a launch with the tuned values", "[export]") {
  const std::string forward = Forward(kProgram, {{"B", 4}});

  CHECK(Has(forward, R"(_mtmc_program.launch("scale", (2, 1, 1), (4, 1, 1), 0)"));
  CHECK(Has(forward, "(_mtmc_ctypes.c_int64, 8), (_mtmc_ctypes.c_float, 0.5)"));
}

TEST_CASE("WriteForward binds parameters by their path in the model", "[export]") {
  CHECK(Has(Forward(kProgram, {{"B", 8}}), R"(w = self.get_parameter("fc.w"))"));
}

TEST_CASE("WriteForward lets a library call make its own result", "[export]") {
  const std::string forward = Forward(kProgram, {{"B", 8}});

  CHECK(Has(forward, "y = _mtmc_torch.ops.aten.softmax(h, 0)"));
  CHECK_FALSE(forward.find("y = _mtmc_torch.empty") != std::string::npos);
  CHECK(Has(forward, "h = _mtmc_torch.empty((8,), dtype=_mtmc_torch.float32, device=device)"));
}

TEST_CASE("WriteForward keeps the precision of a library call", "[export]") {
  CHECK(Has(Forward(kProgram, {{"B", 8}}), "with _mtmc_tf32(True):"));
}

TEST_CASE("WriteForward stores a changed buffer and returns the output", "[export]") {
  const std::string forward = Forward(kProgram, {{"B", 8}});

  CHECK(Has(forward, R"(self.get_buffer("bn.mean").copy_(m))"));
  CHECK(Has(forward, "return y\n"));
}

TEST_CASE("WriteForward refuses a program without an output of the problem", "[export]") {
  const kernel::ParseResult parsed = kernel::ParseProgram(
      "//@ mtmc 1 cuda\n//@ input x f32[8]\n//@ output y f32[8]\n//@ call aten::relu(x) -> y\n");
  REQUIRE(parsed.program);

  CHECK_FALSE(WriteForward(*parsed.program, MakeGraph(), {}).ok());
}

}  // namespace
}  // namespace mtmc::client

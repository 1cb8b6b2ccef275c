// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "client/export/exporter.h"
#include "common/base/file.h"
#include "common/base/subprocess.h"
#include "common/base/temp_dir.h"
#include "common/config/python_environment.h"
#include "common/testing/status_matchers.h"
#include "kernel/graph/graph_proto.h"
#include "mtmc/v1/problem.pb.h"

namespace mtmc::client {
namespace {

using kernel::Graph;
using kernel::GraphInput;
using kernel::GraphOutput;
using kernel::TensorType;
using testing::IsOk;

// An exporter needs to know that a value is there, not how it comes about.
kernel::GraphNode Node(const std::string& result, const TensorType& type) {
  return {
      .name = result, .op = "aten::relu", .results = {result}, .result_types = {type}, .line = 1};
}

std::string Exported(const std::string& problem, const std::string& program, const Graph& graph) {
  const v1::Graph proto = kernel::ToProto(graph);
  auto text = ExportPython({.problem_source = problem,
                            .program = program,
                            .tuned = {},
                            .graph = &proto,
                            .remarks = {},
                            .provenance = {}});
  REQUIRE_THAT(text.status(), IsOk());
  return *std::move(text);
}

// Exports the program and lets scripts/export-check judge the file on the processor.
void CheckExported(const std::string& problem, const std::string& program, const Graph& graph) {
  const auto environment = config::PythonEnvironment::Probe();
  if (!environment.ok() || !environment->has_pyopencl ||
      !std::filesystem::exists(MTMC_EXPORT_CHECK)) {
    std::cout << "SKIPPED: there is no PyTorch, no pyopencl or no scripts/export-check\n";
    return;
  }
  const auto folder = base::TempDir::Create();
  REQUIRE_THAT(folder.status(), IsOk());
  const std::string path = (folder->path() / "exported.py").string();
  REQUIRE_THAT(base::WriteFileAtomically(path, Exported(problem, program, graph)), IsOk());

  const std::string log = (folder->path() / "log").string();
  auto check = base::Subprocess::Start(
      {.argv = {environment->python.string(), MTMC_EXPORT_CHECK, path, "--device", "cpu"},
       .inherited_variables = std::vector<std::string>{"PATH", "HOME", "LD_LIBRARY_PATH"},
       .standard_output = base::Stdio::File(log)});
  REQUIRE_THAT(check.status(), IsOk());
  const auto ended = check->Wait(absl::Now() + absl::Minutes(3));
  INFO(base::ReadFile(log).value_or("no log"));
  REQUIRE_THAT(ended.status(), IsOk());
  CHECK(ended->ToString() == "exited with code 0");
}

TEST_CASE("An exported file runs kernels, changes buffers, and gives scratch back", "[export]") {
  const TensorType type{.shape = {4, 64}};
  const TensorType row{.shape = {64}};
  Graph graph;
  graph.inputs = {
      {.name = "x", .kind = GraphInput::Kind::kUserInput, .type = type},
      {.name = "w", .kind = GraphInput::Kind::kParameter, .type = row, .target = "part.w"},
      {.name = "total", .kind = GraphInput::Kind::kBuffer, .type = row, .target = "total"}};
  graph.nodes = {Node("y", type), Node("sum", row)};
  graph.outputs = {
      {.name = "y", .kind = GraphOutput::Kind::kUserOutput, .value = "y", .type = type},
      {.name = "sum",
       .kind = GraphOutput::Kind::kBufferMutation,
       .value = "sum",
       .type = row,
       .target = "total"}};

  CheckExported(R"(
import torch

class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(64))

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.register_buffer("total", torch.zeros(64))

    def forward(self, x):
        y = x * self.part.w * 0.5 + 3
        self.total += y.sum(0)
        return y

def get_inputs():
    return [torch.randn(4, 64)]

def get_init_inputs():
    return []
)",
                R"(//@ mtmc 1 opencl
//@ input x f32[4,64]
//@ weight w f32[64]
//@ weight total f32[64]
//@ buffer pass f32[4,64]
//@ output y f32[4,64]
//@ output sum f32[64]
//@ launch scale grid=4 block=64 args=(x, w, pass, 0.5)
//@ launch shift grid=4 block=64 args=(pass, y, 3)
//@ launch add grid=1 block=64 args=(y, total, sum, 4)
__kernel void scale(__global const float* x, __global const float* w, __global float* h, float s) {
  h[get_global_id(0)] = x[get_global_id(0)] * w[get_global_id(0) % 64] * s;
}
__kernel void shift(__global const float* h, __global float* y, long n) {
  y[get_global_id(0)] = h[get_global_id(0)] + n;
}
__kernel void add(__global const float* y, __global const float* t, __global float* s, uchar rows) {
  float sum = t[get_global_id(0)];
  for (int i = 0; i < rows; ++i) sum += y[i * 64 + get_global_id(0)];
  s[get_global_id(0)] = sum;
}
)",
                graph);
}

TEST_CASE("An exported file makes library calls as their schemas ask", "[export]") {
  const TensorType type{.shape = {1, 2, 8, 16}};
  Graph graph;
  graph.inputs = {{.name = "x", .kind = GraphInput::Kind::kUserInput, .type = type}};
  graph.nodes = {Node("y", type), Node("z", type)};
  graph.outputs = {
      {.name = "y", .kind = GraphOutput::Kind::kUserOutput, .value = "y", .type = type},
      {.name = "z", .kind = GraphOutput::Kind::kUserOutput, .value = "z", .type = type}};

  CheckExported(R"(
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        a = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.5)
        return (torch.einsum("abij,abkj->abik", a, x) + a @ x.transpose(2, 3)) @ x, a

def get_inputs():
    return [torch.randn(1, 2, 8, 16)]

def get_init_inputs():
    return []
)",
                R"(//@ mtmc 1 opencl
//@ capture
//@ input x f32[1,2,8,16]
//@ buffer h f32[1,2,8,8]
//@ buffer g f32[1,2,8,8]
//@ buffer k f32[1,2,8,8]
//@ output y f32[1,2,8,16]
//@ output z f32[1,2,8,16]
//@ call aten::scaled_dot_product_attention(x, x, x, None, 0.0, True, scale=0.5) -> z
//@ call aten::einsum("abij,abkj->abik", [z, x]) -> h
//@ call aten::matmul(z, as_strided(x, [1, 2, 16, 8], [256, 128, 1, 16], 0)) -> g
//@ call aten::add(h, g) -> k
//@ call aten::matmul(k, x) -> y precision=ieee
)",
                graph);
}

TEST_CASE("A kernel has its name as symbol in an exported file, too", "[export]") {
  const TensorType type{.shape = {8}};
  Graph graph;
  graph.inputs = {{.name = "x", .kind = GraphInput::Kind::kUserInput, .type = type}};
  graph.nodes = {Node("y", type)};
  graph.outputs = {
      {.name = "y", .kind = GraphOutput::Kind::kUserOutput, .value = "y", .type = type}};
  const std::string text = Exported("class Model: pass\n",
                                    "//@ mtmc 1 cuda\n//@ input x f32[8]\n//@ output y f32[8]\n"
                                    "//@ launch twice grid=1 block=8 args=(x, y)\n"
                                    "__global__ void twice(const float* x, float* y) {\n"
                                    "  y[threadIdx.x] = 2 * x[threadIdx.x];\n}\n",
                                    graph);
  CHECK(text.find("\nextern \"C\" __global__ void twice(") != std::string::npos);
}

}  // namespace
}  // namespace mtmc::client

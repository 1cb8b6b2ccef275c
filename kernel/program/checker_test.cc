// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/checker.h"

#include <catch2/catch.hpp>

namespace mtmc::kernel {
namespace {

using Catch::Matchers::Contains;

const ProgramInterface kInterface = {
    .inputs = {{.role = Tensor::Role::kInput, .name = "x", .type = *FindTensorType("f32[16,64]")},
               {.role = Tensor::Role::kWeight, .name = "w", .type = *FindTensorType("bf16[64]")}},
    .outputs = {{.role = Tensor::Role::kOutput, .name = "y", .type = *FindTensorType("f32[16]")}}};

constexpr char kDeclarations[] =
    "//@ input x f32[16,64]\n//@ weight w bf16[64]\n//@ buffer h f32[16]\n//@ output y f32[16]\n";

constexpr char kKernel[] =
    "extern \"C\" __global__ void __launch_bounds__(256) f(const float* x, float* y, int n) {}\n";

// Diagnostics of a CUDA program that is `directives` followed by `source`.
std::string Check(const std::string& directives, const std::string& source = kKernel,
                  const std::string& dialect = "cuda") {
  const ParseResult result = ParseProgram("//@ mtmc 1 " + dialect + "\n" + directives + source);
  INFO(ToText(result.diagnostics));
  REQUIRE(result.program);
  const CheckLimits limits = {.allowed_calls = {"aten::relu", "aten::relu_", "aten::sum"}};
  return ToText(
      CheckProgram(*result.program, kInterface, limits, DefaultBindings(*result.program)));
}

std::string CheckPlan(const std::string& steps, const std::string& source = kKernel) {
  return Check(kDeclarations + steps, source);
}

TEST_CASE("CheckProgram accepts a sound CUDA program", "[program]") {
  CHECK(CheckPlan("//@ tune T = 64 4096\n"
                  "//@ launch f grid=16/(T/64) block=T args=(x, h, T)\n"
                  "//@ call aten::relu(h) -> y\n") == "");
}

TEST_CASE("CheckProgram accepts a sound OpenCL program", "[program]") {
  const std::string source =
      "__kernel void f(__global const float4* x, __global const ushort* w, __global float* y, "
      "float a) {}\n";

  CHECK(Check(std::string(kDeclarations) + "//@ launch f grid=1 block=16 args=(x, w, y, 3)\n",
              source, "opencl") == "");
}

TEST_CASE("CheckProgram finds what is wrong with a plan", "[program]") {
  struct Case {
    std::string steps;
    std::string expected;
  };

  const auto c = GENERATE(values<Case>({
      {"//@ launch g grid=1 block=1 args=(x, y, 1)", "there is no kernel `g`"},
      {"//@ launch f grid=1 block=1 args=(x, y)", "takes 3 arguments, the launch has 2"},
      {"//@ launch f grid=1 block=1 args=(1, y, 1)", "is a pointer; pass a tensor"},
      {"//@ launch f grid=1 block=1 args=(x, y, h)", "is a scalar; `h` is a tensor"},
      {"//@ launch f grid=1 block=1 args=(x, y, 1.5)", "is an integer"},
      {"//@ launch f grid=1 block=1 args=(x, y, 2147483648)", "cannot hold 2147483648"},
      {"//@ launch f grid=1 block=1 args=(w, y, 1)", "points to `float` but `w` is bf16[64]"},
      {"//@ launch f grid=1 block=1 args=(x, x, 1)", "must point to const"},
      {"//@ launch f grid=1 block=1 args=(h, y, 1)", "`h` is read before"},
      {"//@ launch f grid=1 block=1 args=(x, h, 1)", "nothing writes output `y`"},
      {"//@ launch f grid=0 block=1 args=(x, y, 1)", "grid dimension 0 is 0"},
      {"//@ launch f grid=(1, 65536) block=1 args=(x, y, 1)", "grid dimension 1 is 65536"},
      {"//@ launch f grid=1 block=2048 args=(x, y, 1)", "block dimension 0 is 2048"},
      {"//@ launch f grid=1 block=(64, 32) args=(x, y, 1)", "2048 threads, at most 1024"},
      {"//@ launch f grid=1 block=512 args=(x, y, 1)", "__launch_bounds__(256)"},
      {"//@ launch f grid=1 block=1 shared=49153 args=(x, y, 1)", "shared memory is 49153"},
      {"//@ launch f grid=1/0 block=1 args=(x, y, 1)", "divides by zero"},
      {"//@ launch f grid=1 block=1 args=(x, y, 1/0)", "divides by zero"},
      {"//@ call aten::relu(x) -> y", "kernel `f` is never launched"},
      {"//@ call aten::gelu(x) -> y", "`aten::gelu` is not allowed"},
      {"//@ call aten::relu_(x) -> y", "works in place"},
      {"//@ call aten::relu(h) -> y", "`h` is read before"},
      {"//@ call aten::relu([h]) -> y", "`h` is read before"},
      {"//@ call aten::relu(z) -> y", "`z` is not declared"},
      {"//@ call aten::relu(x) -> z", "`z` is not declared"},
      {"//@ call aten::relu(x) -> w", "weight `w` is read only"},
      {"//@ call aten::sum(x, out=x) -> y", "input `x` is read only"},
      {"//@ call aten::sum(x, out=as_strided(h, [1], [1])) -> y", "no part of `h`"},
      {"//@ call aten::relu(as_strided(x, [2], [1], 1023)) -> y", "beyond its"},
      {"//@ call aten::relu(as_strided(h, [1], [1])) -> y", "`h` is read before"},
  }));
  CAPTURE(c.steps);

  CHECK_THAT(CheckPlan(c.steps + "\n"), Contains(c.expected));
}

TEST_CASE("CheckProgram finds what is wrong with declarations", "[program]") {
  struct Case {
    std::string declarations;
    std::string expected;
  };

  const auto c = GENERATE(values<Case>({
      {"//@ input x f32[16,64]\n", "declare `output y f32[16]`"},
      {"//@ input x f32[64,16]\n//@ output y f32[16]\n", "declare it as `input x f32[16,64]`"},
      {"//@ weight x f32[16,64]\n//@ output y f32[16]\n", "declare it as `input x f32[16,64]`"},
      {"//@ input x f32[16,64]\n//@ output z f32[16]\n", "the problem has no output `z`; it has y"},
      {"//@ input x f32[16,64]\n//@ output y f32[16]\n//@ buffer h u8[68719476737]\n",
       "the buffers take"},
  }));
  CAPTURE(c.declarations);

  CHECK_THAT(Check(c.declarations + "//@ launch f grid=1 block=1 args=(x, x, 1)\n"),
             Contains(c.expected));
}

TEST_CASE("CheckProgram keeps OpenCL to what OpenCL has", "[program]") {
  const auto [source, launch, expected] = GENERATE(table<std::string, std::string, std::string>({
      {"__kernel void f(__global float* y) {}", "shared=4 args=(y)", "`shared=` is for cuda only"},
      {"__kernel void f(float* y) {}", "args=(y)", "must be a __global pointer"},
      {"__kernel __attribute__((reqd_work_group_size(8,1,1))) void f(__global float* y) {}",
       "args=(y)", "requires 8"},
  }));
  CAPTURE(source);

  CHECK_THAT(Check(std::string(kDeclarations) + "//@ launch f grid=1 block=4 " + launch + "\n",
                   source, "opencl"),
             Contains(expected));
}

TEST_CASE("CheckProgram says one thing about one mistake", "[program]") {
  const std::string text =
      CheckPlan("//@ launch f grid=1 block=1 args=(x, h)\n//@ call aten::relu(h) -> y\n");

  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

TEST_CASE("CheckProgram accepts an in-place update of a written buffer", "[program]") {
  CHECK(CheckPlan("//@ launch f grid=1 block=1 args=(x, y, 1)\n//@ launch f grid=1 block=1 "
                  "args=(y, y, 1)\n") == "");
}

TEST_CASE("CheckProgram wants the seed of a plan's first random numbers", "[program]") {
  const auto check = [](const std::string& calls) {
    const ParseResult result =
        ParseProgram("//@ mtmc 1 cuda\n" + std::string(kDeclarations) + calls);
    REQUIRE(result.program);
    return ToText(
        CheckProgram(*result.program, kInterface, {.allowed_calls = {"aten::rand_like"}}, {}));
  };

  CHECK_THAT(check("//@ call aten::rand_like(x) -> y\n"), Contains("as in seed=0"));
  CHECK(check("//@ call aten::rand_like(x, seed=7) -> h\n//@ call aten::rand_like(h) -> y\n") ==
        "");
}

TEST_CASE("CheckProgram accepts Triton only where the worker has it", "[program]") {
  const ParseResult result = ParseProgram(
      "#@ mtmc 1 triton\n#@ output y f32[16]\n#@ launch f grid=1 block=128 args=(y, 1)\n");
  REQUIRE(result.program);

  CHECK_THAT(ToText(CheckProgram(*result.program, kInterface, {}, {})),
             Contains("not supported by this worker"));
  CHECK(CheckProgram(*result.program, kInterface, {.allows_triton = true}, {}).empty());
}

// Diagnostics where the reference computes `y` from `x` and `w`.
std::string CheckReads(const std::string& steps, const std::string& source) {
  ProgramInterface interface = kInterface;
  interface.needed = {{.name = "x", .output = "y", .line = 7}, {.name = "w", .output = "y"}};
  const ParseResult result =
      ParseProgram("//@ mtmc 1 cuda\n" + std::string(kDeclarations) + steps + source);
  REQUIRE(result.program);
  const CheckLimits limits = {.allowed_calls = {"aten::mul", "aten::relu"}};
  return ToText(CheckProgram(*result.program, interface, limits, {}));
}

TEST_CASE("CheckProgram names an input that the plan never reads", "[program]") {
  const std::string kernel =
      "__global__ void f(const float* x, const __nv_bfloat16* w, float* y) { y[0] = x[0]; }\n"
      "__global__ void g(const float* x, float* y) { y[0] = x[0]; }\n";
  const std::string unused = "//@ launch f grid=1 block=1 args=(x, w, y)\n";
  const std::string passed = "//@ launch g grid=1 block=1 args=(x, y)\n";

  CHECK_THAT(CheckReads(unused + passed, kernel),
             Contains("weight `w` is needed by output `y` and `f` never uses its parameter `w`"));
  CHECK_THAT(CheckReads("//@ call aten::relu(w) -> y\n", ""),
             Contains("input `x` is needed by output `y` (line 7 of the problem) and no step"));
  CHECK_THAT(
      CheckReads("//@ call aten::relu(w) -> h\n//@ call aten::relu(x) -> y\n", ""),
      Contains("`w` is needed by output `y` and is read only by steps that reach no output"));
}

TEST_CASE("CheckProgram accepts inputs that reach an output through scratch", "[program]") {
  CHECK(CheckReads("//@ call aten::relu(w) -> h\n//@ call aten::mul(x, h) -> y\n", "") == "");
  CHECK(CheckReads("//@ call aten::relu([x, w]) -> y\n", "") == "");
}

}  // namespace
}  // namespace mtmc::kernel

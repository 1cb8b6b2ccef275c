// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/stall.h"

#include <catch2/catch.hpp>
#include <string>

#include "kernel/program/parser.h"
#include "kernel/program/printer.h"
#include "kernel/program/signature.h"

namespace mtmc::kernel {
namespace {

using Catch::Contains;

constexpr const char* kSource =
    "//@ mtmc 1 cuda\n"
    "//@ input x f32[8]\n"
    "//@ output y f32[8]\n"
    "//@ launch first grid=1 block=8 args=(x, y)\n"
    "//@ launch second grid=1 block=8 args=(y)\n"
    "// first() { is no kernel\n"
    "extern \"C\" __global__ void first(const float* x, float* y) { y[threadIdx.x] = x[0]; }\n"
    "extern \"C\" __global__ void __launch_bounds__(8) second(float* y)\n"
    "{\n"
    "  if (threadIdx.x) { y[0] = \\\n1; }\n"
    "}\n";

Program Parsed(const std::string& text) {
  ParseResult result = ParseProgram(text);
  REQUIRE(result.program);
  return *std::move(result.program);
}

TEST_CASE("Every kernel begins with the delay, and nothing else does", "[program]") {
  const std::string stalled = WithStalledBlocks(Parsed(kSource), 7);

  CHECK_THAT(stalled, Contains("first(const float* x, float* y) { __mtmc_stall(); "));
  CHECK_THAT(stalled, Contains("second(float* y)\n{ __mtmc_stall(); "));
  CHECK_THAT(stalled, Contains("// first() { is no kernel\n"));
  CHECK_THAT(stalled, Contains("if (threadIdx.x) { y[0] = 1; }"));
}

TEST_CASE("In the middle a block may wait before and behind each store", "[program]") {
  std::string source = kSource;
  source.replace(source.find("= x[0]"), 6, "= y[0]");
  const std::string stalled = WithStalledBlocks(Parsed(source), 7, StallPlaces::kMiddles);

  CHECK_THAT(stalled, Contains("{ unsigned __mtmc_at = __mtmc_begin(2u);  { auto __mtmc_v0 = y[0]; "
                               "if (__mtmc_at == 1u) __mtmc_at = __mtmc_wait(); "
                               "y[threadIdx.x] = __mtmc_v0; if (__mtmc_at == 2u)"));
  CHECK_THAT(stalled, Contains("second(float* y)\n{\n"));
}

TEST_CASE("A stalled program has the same plan and the same kernels", "[program]") {
  const Program program = Parsed(kSource);
  const Program stalled = Parsed(WithStalledBlocks(program, 7));

  CHECK(PrintDirectives(stalled) == PrintDirectives(program));
  const KernelScan before = FindKernels(program.text, program.dialect);
  const KernelScan after = FindKernels(stalled.text, stalled.dialect);
  REQUIRE(after.kernels.size() == before.kernels.size());
  CHECK(after.kernels[1].parameters.size() == before.kernels[1].parameters.size());
}

TEST_CASE("Another seed delays other blocks", "[program]") {
  CHECK(WithStalledBlocks(Parsed(kSource), 7) != WithStalledBlocks(Parsed(kSource), 8));
}

TEST_CASE("A plan of library calls has nothing to delay", "[program]") {
  const Program program = Parsed(
      "//@ mtmc 1 cuda\n//@ input x f32[8]\n//@ output y f32[8]\n//@ call aten::relu(x) -> y\n");
  CHECK(WithStalledBlocks(program, 7).empty());
  CHECK(WithStalledBlocks(program, 7, StallPlaces::kMiddles).empty());
}

}  // namespace
}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/printer.h"

#include <catch2/catch.hpp>

#include "kernel/program/parser.h"

namespace mtmc::kernel {
namespace {

constexpr char kCanonical[] = R"(//@ mtmc 1 cuda
//@ input x f32[16,64]
//@ weight w bf16[64,64]
//@ buffer h f32[16,64]
//@ output y f32[]
//@ tune BM = 64 128
//@ tune STAGES = 3
//@ launch gemm grid=(64/BM, 16) block=(256) shared=STAGES*(BM + 8)*4 args=(x, w, h, BM*2, 0.5, 1.0, -inf)
//@ call aten::logsumexp.dim(h, [1, 2], "a\"b", None, keepdim=True) -> y, _ precision=tf32
//@ call aten::conv2d(x, w) -> y precision=ieee layout=channels_last
//@ capture
)";

TEST_CASE("PrintDirectives gives back a canonical text", "[program]") {
  const ParseResult result = ParseProgram(kCanonical);
  INFO(ToText(result.diagnostics));
  REQUIRE(result.program);

  CHECK(PrintDirectives(*result.program) == kCanonical);
}

TEST_CASE("PrintDirectives uses Python comments for Triton", "[program]") {
  const Program program{.dialect = Dialect::kTriton};

  CHECK(PrintDirectives(program) == "#@ mtmc 1 triton\n");
}

}  // namespace
}  // namespace mtmc::kernel

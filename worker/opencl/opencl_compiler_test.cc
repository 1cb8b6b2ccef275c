// SPDX-License-Identifier: Apache-2.0
#include "worker/opencl/opencl_compiler.h"

#include <catch2/catch.hpp>
#include <string>

#include "worker/opencl/opencl_fixture.h"

namespace mtmc::worker {
namespace {

constexpr char kPlan[] = R"(//@ mtmc 1 opencl
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
)";

// What `source` makes of 1.
float Run(Bench& bench, const std::string& source) {
  auto runner = bench.Load(kPlan + source);
  REQUIRE(runner.ok());
  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes({1.0F})}}, 1));
  return FirstOutput(**runner)[0];
}

TEST_CASE("OpenClCompiler lets a variable have any name", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;

  CHECK(Run(*bench,
            "// asm, printf and __attribute__((constructor)) are words here\n"
            "__kernel void add(__global const float* section, __global float* y) {\n"
            "  const float constructor = section[0];\n  y[0] = constructor + 1.0f;\n}\n") == 2.0F);
}

TEST_CASE("OpenClCompiler takes the meaning of an attribute that macros paste", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;

  // It would end the process that loads the kernel.
  CHECK(
      Run(*bench,
          "#define PASTE(a, b) a##b\n"
          "void early(void) __attribute__((PASTE(con, structor)));\n"
          "void early(void) { *(volatile int*)0 = 0; }\n"
          "__kernel void add(__global const float* x, __global float* y) { y[0] = x[0] + 1; }\n") ==
      2.0F);
}

TEST_CASE("OpenClCompiler refuses an attribute's other spelling", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;

  const CompileResult result =
      OpenClCompiler(bench->context)
          .Compile(
              "#define PASTE(a, b) a##b\n"
              "void early(void) __attribute__((PASTE(__con, structor__)));\n"
              "void early(void) {}\n__kernel void f() {}\n",
              {});

  REQUIRE(result.failure);
  CHECK_THAT(result.log, Catch::Contains("poisoned"));
}

TEST_CASE("OpenClCompiler refuses lines that would undo its guard", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;

  const CompileResult result =
      OpenClCompiler(bench->context).Compile("#undef constructor\n__kernel void f() {}\n", {});

  REQUIRE(result.failure);
  CHECK_THAT(result.failure->diagnostics, Catch::Contains("line 1: `constructor`"));
}

}  // namespace
}  // namespace mtmc::worker

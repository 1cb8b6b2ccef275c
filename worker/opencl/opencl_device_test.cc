// SPDX-License-Identifier: Apache-2.0
#include "worker/opencl/opencl_device.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <string>

#include "worker/opencl/opencl_fixture.h"

namespace mtmc::worker {
namespace {

TEST_CASE("OpenClDevice runs a plan of two launches", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  Floats x(1000);
  std::iota(x.begin(), x.end(), 0.0F);

  auto runner = bench->Load(kScale, {{"FACTOR", 3}});
  REQUIRE(runner.ok());
  const MaybeFailure failure = (*runner)->Execute({{"x", Bytes(x)}}, 0xA5);

  CHECK_FALSE(failure);
  const Floats y = FirstOutput(**runner);
  CHECK(y[0] == 1.0F);
  CHECK(y[999] == 3 * 999.0F + 1);
}

TEST_CASE("OpenClDevice times the executed plan", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  const Floats x(1000, 1.0F);
  auto runner = bench->Load(kScale, {{"FACTOR", 2}});
  REQUIRE(runner.ok());
  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(x)}}, 0));

  auto sample = (*runner)->Time(/*is_cold=*/true);
  auto profile = (*runner)->Profile(CounterScope::kAll);

  REQUIRE(sample.ok());
  CHECK(sample->seconds > 0);
  REQUIRE(profile.ok());
  CHECK(profile->activities.size() == 2);
  CHECK(profile->counters.steps.empty());
  CHECK_FALSE(profile->counters.missing.empty());
  CHECK_FALSE((*runner)->CheckMemory());
}

TEST_CASE("OpenClCompiler reports the compiler's log", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  OpenClCompiler compiler(bench->context);

  const CompileResult result = compiler.Compile("__kernel void f() { undeclared = 1; }", {});

  REQUIRE(result.failure);
  CHECK(result.failure->kind == Failure::Kind::kCompile);
  CHECK_THAT(result.failure->diagnostics, Catch::Contains("undeclared"));
}

TEST_CASE("OpenClCompiler refuses forbidden words that macros paste together", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;

  const CompileResult result = OpenClCompiler(bench->context)
                                   .Compile(
                                       "#define PASTE(a, b) a##b\n"
                                       "__kernel void f() { PASTE(__as, m__)(\"nop\"); }\n",
                                       {});

  REQUIRE(result.failure);
  CHECK_THAT(result.log, Catch::Contains("poisoned") && Catch::Contains(":2:"));
}

}  // namespace
}  // namespace mtmc::worker

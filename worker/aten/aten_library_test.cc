// SPDX-License-Identifier: Apache-2.0
#include "worker/aten/aten_library.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "common/config/python_environment.h"
#include "kernel/program/parser.h"
#include "worker/device/plan_runner.h"
#include "worker/opencl/opencl_compiler.h"
#include "worker/opencl/opencl_device.h"

namespace mtmc::worker {
namespace {

using Floats = std::vector<float>;

// An OpenCL device on the processor with the library on its memory; null where
// the host lacks either.
struct Bench {
  std::shared_ptr<const OpenClContext> context;
  std::unique_ptr<OpenClDevice> device;
  std::unique_ptr<AtenLibrary> library;

  static std::unique_ptr<Bench> Find() {
    auto context = OpenClContext::Create(0);
    auto environment = config::PythonEnvironment::Probe();
    if (!context.ok() || !environment.ok()) {
      std::cout << "SKIPPED: there is no OpenCL device or no PyTorch\n";
      return nullptr;
    }
    auto library = AtenLibrary::Open({.plugin = MTMC_BINARY_DIR "/../lib/mtmc_aten.so",
                                      .torch_lib_dir = environment->torch_lib_dir});
    INFO(library.status().message());
    REQUIRE(library.ok());
    return std::unique_ptr<Bench>(
        new Bench{*context, std::make_unique<OpenClDevice>(*context), *std::move(library)});
  }

  Outcome<std::unique_ptr<PlanRunner>> Load(const std::string& text,
                                            std::vector<std::string> allowed) {
    const kernel::ParseResult parsed = kernel::ParseProgram(text);
    INFO(kernel::ToText(parsed.diagnostics));
    REQUIRE(parsed.program.has_value());
    const CompileResult compiled = OpenClCompiler(context).Compile(text, {});
    REQUIRE_FALSE(compiled.failure);
    return PlanRunner::Create(*device, library.get(),
                              {.program = *parsed.program,
                               .bindings = {},
                               .binary = compiled.binary,
                               .allowed_calls = std::move(allowed)});
  }
};

std::span<const std::byte> Bytes(const Floats& values) { return std::as_bytes(std::span(values)); }

Floats OutputOf(PlanRunner& runner, size_t index = 0) {
  auto outputs = runner.Outputs();
  REQUIRE(outputs.ok());
  Floats values(static_cast<size_t>((*outputs)[index].tensor->type.elements()));
  REQUIRE_FALSE((*outputs)[index].buffer->Download(std::as_writable_bytes(std::span(values))));
  return values;
}

constexpr char kLinearThenAdd[] = R"(//@ mtmc 1 opencl
//@ input  x f32[2,3]
//@ weight w f32[4,3]
//@ buffer h f32[2,4]
//@ output y f32[2,4]
//@ call aten::linear(x, w, None) -> h
//@ launch add_one grid=8 block=1 args=(h, y)
__kernel void add_one(__global const float* h, __global float* y) {
  y[get_global_id(0)] = h[get_global_id(0)] + 1;
}
)";

}  // namespace

TEST_CASE("A launch reads what a library call returned, in place", "[aten]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(kLinearThenAdd, {"aten::linear"});
  REQUIRE(runner.ok());
  const Floats x = {1, 2, 3, 4, 5, 6};
  const Floats w = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1};

  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(x)}, {"w", Bytes(w)}}, 0xA5));
  auto sample = (*runner)->Time(/*is_cold=*/false);

  CHECK(sample.ok());
  CHECK(OutputOf(**runner) == Floats{2, 3, 4, 7, 5, 6, 7, 16});
}

TEST_CASE("A library call takes lists, keywords and several results", "[aten]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(R"(//@ mtmc 1 opencl
//@ input  x f32[2,3]
//@ output v f32[2,1]
//@ output i i64[2,1]
//@ output m f32[2]
//@ call aten::max.dim(x, 1, keepdim=True) -> v, i
//@ call aten::mean.dim(x, [1], False) -> m
)",
                            {"aten::max", "aten::mean"});
  REQUIRE(runner.ok());
  const Floats x = {1, 5, 3, 9, 8, 7};

  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(x)}}, 0xA5));

  CHECK(OutputOf(**runner) == Floats{5, 9});
  CHECK(OutputOf(**runner, 2) == Floats{3, 8});
}

TEST_CASE("A library call gives its result with channels last", "[aten]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(
      "//@ mtmc 1 opencl\n//@ input x f32[1,2,2]\n//@ output y f32[1,2,2]\n"
      "//@ call aten::relu(x) -> y layout=channels_last\n",
      {"aten::relu"});
  REQUIRE(runner.ok());
  const Floats x = {1, 2, 3, 4};

  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(x)}}, 0xA5));

  CHECK(OutputOf(**runner) == Floats{1, 3, 2, 4});
}

TEST_CASE("A result that has no channels is refused in that layout", "[aten]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(
      "//@ mtmc 1 opencl\n//@ input x f32[4]\n//@ output y f32[4]\n"
      "//@ call aten::relu(x) -> y layout=channels_last\n",
      {"aten::relu"});
  REQUIRE(runner.ok());
  const Floats x = {1, 2, 3, 4};

  const auto failure = (*runner)->Execute({{"x", Bytes(x)}}, 0xA5);

  REQUIRE(failure);
  CHECK(failure->diagnostics.find("layout=channels_last") != std::string::npos);
}

TEST_CASE("A library call reads elements of a tensor where they lie", "[aten]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(
      "//@ mtmc 1 opencl\n//@ input x f32[2,3]\n//@ output y f32[2,2,2]\n"
      "//@ call aten::cat([as_strided(x, [2, 1, 2], [1, 0, 3], 1), as_strided(x, [2, 1, 2], [3, 5, "
      "0], 0)], 1) -> y\n",
      {"aten::cat"});
  REQUIRE(runner.ok());
  const Floats x = {0, 1, 2, 3, 4, 5};
  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(x)}}));

  CHECK(OutputOf(**runner) == Floats{1, 4, 0, 0, 2, 5, 3, 3});
}

TEST_CASE("A library call does not read beyond a tensor", "[aten]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(
      "//@ mtmc 1 opencl\n//@ input x f32[4]\n//@ output y f32[2]\n"
      "//@ call aten::relu(as_strided(x, [2], [4])) -> y\n",
      {"aten::relu"});
  REQUIRE(runner.ok());
  const Floats x = {0, 1, 2, 3};
  const MaybeFailure failure = (*runner)->Execute({{"x", Bytes(x)}});

  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kLibrary);
  CHECK(failure->diagnostics.find("beyond the elements of 'x'") != std::string::npos);
}

TEST_CASE("Overloads are chosen by the arguments", "[aten]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(R"(//@ mtmc 1 opencl
//@ input  x f32[2,3]
//@ buffer a f32[2,3]
//@ output y f32[3,2]
//@ call aten::mul(x, 2.0) -> a
//@ call aten::transpose(a, 0, 1) -> y
)",
                            {"aten::mul", "aten::transpose"});
  REQUIRE(runner.ok());
  const Floats x = {1, 2, 3, 4, 5, 6};

  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(x)}}, 0xA5));

  CHECK(OutputOf(**runner) == Floats{2, 8, 4, 10, 6, 12});
}

TEST_CASE("A call that names its overload gives every argument by position", "[aten]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(
      "//@ mtmc 1 opencl\n//@ input x f32[2,3]\n//@ output y f32[3]\n"
      "//@ call aten::mean.dim(x, [0], False, None) -> y\n",
      {"aten::mean"});
  REQUIRE(runner.ok());

  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes({1, 2, 3, 5, 6, 7})}}, 0));

  CHECK(OutputOf(**runner) == Floats{3, 4, 5});
}

TEST_CASE("The results of a short plan's calls change places, and nothing else", "[aten]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(kLinearThenAdd, {"aten::linear"});
  REQUIRE(runner.ok());
  const Floats x(6, 1.0F);
  const Floats w(12, 2.0F);
  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(x)}, {"w", Bytes(w)}}, 0xA5));

  std::set<const void*> results;
  for (int i = 0; i < 80; ++i) {
    REQUIRE_FALSE((*runner)->Shuffle());
    REQUIRE((*runner)->Time(/*is_cold=*/false).ok());
    results.insert(std::get<const Buffer*>((*runner)->FindLaunch(1)->arguments[0])->address());
    CHECK(OutputOf(**runner) == Floats(8, 7.0F));
    CHECK_FALSE((*runner)->CheckMemory());
  }

  CHECK(results.size() > 20);
}

TEST_CASE("Random numbers start from the seed of the call in every execution", "[aten]") {
  auto bench = Bench::Find();
  if (!bench) return;
  const auto run = [&](const std::string& seed, uint64_t fill) {
    auto runner = bench->Load(R"(//@ mtmc 1 opencl
//@ input  x f32[64]
//@ output y f32[64]
//@ output z f32[64]
//@ call aten::rand_like(x, seed=)" +
                                  seed +
                                  R"() -> y
//@ call aten::native_dropout(y, 0.5, True) -> z, _
)",
                              {"aten::rand_like", "aten::native_dropout"});
    REQUIRE(runner.ok());
    const Floats x(64);
    REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(x)}}, fill));
    return std::pair(OutputOf(**runner, 0), OutputOf(**runner, 1));
  };

  const auto first = run("7", 1);

  CHECK(run("7", 2) == first);
  CHECK(run("8", 3).first != first.first);
  // The second draw goes on where the first one ended.
  CHECK(std::count(first.second.begin(), first.second.end(), 0.0F) > 0);
}

TEST_CASE("An operator that is not allowed is refused", "[aten]") {
  auto bench = Bench::Find();
  if (!bench) return;

  auto runner = bench->Load(kLinearThenAdd, {"aten::relu"});

  REQUIRE_FALSE(runner.ok());
  CHECK(runner.failure().kind == Failure::Kind::kLibrary);
  CHECK_THAT(runner.failure().message, Catch::Contains("not an allowed call"));
}

TEST_CASE("An output that is the memory of an input is refused", "[aten]") {
  auto bench = Bench::Find();
  if (!bench) return;
  const std::string call = GENERATE("alias(x)", "contiguous(x)", "view(x, [3, 2])");
  CAPTURE(call);
  auto runner = bench->Load(
      "//@ mtmc 1 opencl\n//@ input x f32[3,2]\n//@ output y f32[3,2]\n//@ call aten::" + call +
          " -> y\n",
      {"aten::alias", "aten::contiguous", "aten::view"});
  REQUIRE(runner.ok());

  const MaybeFailure failure = (*runner)->Execute({{"x", Bytes(Floats(6))}}, 0);

  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kLibrary);
  CHECK_THAT(failure->message, Catch::Contains("memory of an input"));
}

TEST_CASE("An error of the library is the candidate's failure", "[aten]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto [call, expected] = GENERATE(table<std::string, std::string>(
      {{"aten::mm(x, x)", "shapes cannot be multiplied"},
       {"aten::linear(x, 'text', None)", "no form of 'aten::linear'"},
       {"aten::relu(x)", "but aten::relu returned f32[2,3]"}}));
  CAPTURE(call);
  auto runner =
      bench->Load("//@ mtmc 1 opencl\n//@ input x f32[2,3]\n//@ output y f32[2,2]\n//@ call " +
                      call + " -> y\n",
                  {"aten::linear", "aten::mm", "aten::relu"});
  REQUIRE(runner.ok());

  const MaybeFailure failure = (*runner)->Execute({{"x", Bytes(Floats(6))}}, 0);

  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kLibrary);
  CHECK_THAT(failure->message + failure->diagnostics, Catch::Contains(expected));
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/opencl/opencl_device.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <iostream>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernel/program/parser.h"
#include "worker/device/plan_runner.h"
#include "worker/opencl/opencl_compiler.h"

namespace mtmc::worker {
namespace {

// A device with its compiler, or nothing where the host has no OpenCL.
struct Bench {
  std::shared_ptr<const OpenClContext> context;
  std::unique_ptr<OpenClDevice> device;

  static std::unique_ptr<Bench> Find() {
    auto context = OpenClContext::Create(0);
    if (!context.ok()) {
      std::cout << "SKIPPED: " << context.status().message() << "\n";
      return nullptr;
    }
    return std::unique_ptr<Bench>(new Bench{*context, std::make_unique<OpenClDevice>(*context)});
  }

  Outcome<std::unique_ptr<PlanRunner>> Load(const std::string& text,
                                            kernel::Bindings bindings = {}) {
    const kernel::ParseResult parsed = kernel::ParseProgram(text);
    INFO(kernel::ToText(parsed.diagnostics));
    REQUIRE(parsed.program.has_value());
    OpenClCompiler compiler(context);
    CompileResult compiled = compiler.Compile(text, bindings);
    if (compiled.failure) return *compiled.failure;
    return PlanRunner::Create(*device, nullptr,
                              {.program = *parsed.program,
                               .bindings = bindings,
                               .binary = compiled.binary,
                               .allowed_calls = {}});
  }
};

using Floats = std::vector<float>;

std::span<const std::byte> Bytes(const Floats& values) { return std::as_bytes(std::span(values)); }

Floats FirstOutput(PlanRunner& runner) {
  auto outputs = runner.Outputs();
  REQUIRE(outputs.ok());
  Floats values(static_cast<size_t>(outputs->front().tensor->type.elements()));
  REQUIRE_FALSE(outputs->front().buffer->Download(std::as_writable_bytes(std::span(values))));
  return values;
}

constexpr char kScale[] = R"(//@ mtmc 1 opencl
//@ input  x f32[1000]
//@ buffer h f32[1000]
//@ output y f32[1000]
//@ tune FACTOR = 2 3
//@ launch scale grid=(ceil_div(1000, 64)) block=64 args=(x, h, 1000)
//@ launch add_one grid=(125) block=(8) args=(h, y, 1.0)
__kernel void scale(__global const float* x, __global float* h, int n) {
  int i = get_global_id(0);
  if (i < n) h[i] = FACTOR * x[i];
}
__kernel void add_one(__global const float* h, __global float* y, float one) {
  int i = get_global_id(0);
  y[i] = h[i] + one;
}
)";

}  // namespace

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
  auto profile = (*runner)->Profile(/*with_counters=*/true);

  REQUIRE(sample.ok());
  CHECK(sample->seconds > 0);
  REQUIRE(profile.ok());
  CHECK(profile->activities.size() == 2);
  CHECK(profile->counters.steps.empty());
  CHECK_FALSE(profile->counters.missing.empty());
  CHECK_FALSE((*runner)->CheckMemory());
}

TEST_CASE("PlanRunner moves its inputs each time", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(kScale, {{"FACTOR", 2}});
  REQUIRE(runner.ok());

  const void* before = nullptr;
  for (const float value : {1.0F, 2.0F, 3.0F, 4.0F}) {
    const Floats x(1000, value);
    // Whatever lay in a place before, and around it, does not show.
    const auto poison = static_cast<uint8_t>(0xA0 + static_cast<int>(value));
    REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(x)}}, poison));
    const void* now = std::get<const Buffer*>((*runner)->FindLaunch(0)->arguments[0])->address();
    CHECK(now != before);
    CHECK(FirstOutput(**runner) == Floats(1000, 2 * value + 1));
    CHECK_FALSE((*runner)->CheckMemory());
    before = now;
  }
}

TEST_CASE("Outputs stay until the execution after the next one", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(kScale, {{"FACTOR", 2}});
  REQUIRE(runner.ok());
  REQUIRE((*runner)->outputs_stay());
  Floats values(1000);
  const Buffer* before = nullptr;

  for (const float value : {1.0F, 2.0F, 3.0F}) {
    const Floats x(1000, value);
    REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(x)}}, 0xFF));
    const Buffer* now = (*runner)->Outputs()->front().buffer;
    if (before) {
      REQUIRE_FALSE(before->Download(std::as_writable_bytes(std::span(values))));
      CHECK(values == Floats(1000, 2 * (value - 1) + 1));
    }
    before = now;
  }
}

TEST_CASE("PlanRunner times on kept inputs where the executed ones lie", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  const Floats ones(1000, 1.0F);
  const Floats twos(1000, 2.0F);
  auto runner = bench->Load(kScale, {{"FACTOR", 2}});
  REQUIRE(runner.ok());
  InputStore store(*bench->device, int64_t{1} << 20);
  REQUIRE(*store.Keep(1, (*runner)->program(), {{"x", Bytes(ones)}}));
  REQUIRE(*store.Keep(2, (*runner)->program(), {{"x", Bytes(twos)}}));
  REQUIRE_FALSE((*runner)->Execute(*store.Find(1), 0xA5));
  const void* address = std::get<const Buffer*>((*runner)->FindLaunch(0)->arguments[0])->address();
  const uint64_t first = *(*runner)->Digest();

  REQUIRE((*runner)->Time(/*is_cold=*/false, store.Find(2)).ok());
  const Floats on_twos = FirstOutput(**runner);
  REQUIRE((*runner)->Time(/*is_cold=*/false, store.Find(1)).ok());

  CHECK(on_twos == Floats(1000, 5.0F));
  CHECK(FirstOutput(**runner) == Floats(1000, 3.0F));
  CHECK(*(*runner)->Digest() == first);
  CHECK(std::get<const Buffer*>((*runner)->FindLaunch(0)->arguments[0])->address() == address);
  CHECK_FALSE((*runner)->CheckMemory());
}

TEST_CASE("The tensors of a short plan change places, and nothing else", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  const Floats ones(1000, 1.0F);
  auto runner = bench->Load(kScale, {{"FACTOR", 2}});
  REQUIRE(runner.ok());
  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(ones)}}, 0xA5));

  std::set<const void*> inputs;
  std::set<const void*> outputs;
  for (int i = 0; i < 40; ++i) {
    REQUIRE_FALSE((*runner)->Shuffle());
    CHECK_FALSE((*runner)->CheckMemory());
    REQUIRE((*runner)->Time(/*is_cold=*/false).ok());
    CHECK(FirstOutput(**runner) == Floats(1000, 3.0F));
    CHECK_FALSE((*runner)->CheckMemory());
    const auto& arguments = (*runner)->FindLaunch(0)->arguments;
    inputs.insert(std::get<const Buffer*>(arguments[0])->address());
    outputs.insert(std::get<const Buffer*>(arguments[1])->address());
  }

  CHECK(inputs.size() > 20);
  CHECK(outputs.size() > 20);
}

TEST_CASE("A long plan stays where it is", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  const size_t count = static_cast<size_t>(bench->device->facts().compute_units) << 20;
  std::string text = kScale;
  for (size_t at; (at = text.find("1000")) != std::string::npos;) {
    text.replace(at, 4, std::to_string(count));
  }
  auto runner = bench->Load(text, {{"FACTOR", 2}});
  REQUIRE(runner.ok());
  const Floats x(count, 1.0F);
  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(x)}}, 0));
  const auto address = [&] {
    return std::get<const Buffer*>((*runner)->FindLaunch(0)->arguments[0])->address();
  };
  const void* before = address();

  REQUIRE_FALSE((*runner)->Shuffle());
  REQUIRE((*runner)->Time(/*is_cold=*/false).ok());

  CHECK(address() == before);
}

TEST_CASE("A timed execution starts from poison", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  // Writes half of its output, and what it found in the other half is not zero.
  const std::string text = R"(//@ mtmc 1 opencl
//@ input  x f32[64]
//@ output y f32[64]
//@ launch half_of grid=1 block=32 args=(x, y)
__kernel void half_of(__global const float* x, __global float* y) {
  y[get_global_id(0)] = x[0];
}
)";
  auto runner = bench->Load(text);
  REQUIRE(runner.ok());
  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(Floats(64, 1.0F))}}, 0));
  REQUIRE(FirstOutput(**runner)[40] == 0.0F);

  REQUIRE((*runner)->Time(/*is_cold=*/false).ok());

  CHECK(FirstOutput(**runner)[0] == 1.0F);
  CHECK_FALSE(FirstOutput(**runner)[40] == 0.0F);
}

TEST_CASE("InputStore refuses what does not fit", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  const Floats x(1000, 1.0F);
  const Floats z(1000, 3.0F);
  auto runner = bench->Load(kScale, {{"FACTOR", 2}});
  REQUIRE(runner.ok());
  InputStore store(*bench->device, 9000);

  CHECK(*store.Keep(1, (*runner)->program(), {{"x", Bytes(x)}}));
  CHECK(*store.Keep(2, (*runner)->program(), {{"x", Bytes(z)}}));
  CHECK_FALSE(*store.Keep(3, (*runner)->program(), {{"x", Bytes(Floats(1000, 4.0F))}}));

  CHECK(store.Find(3) == nullptr);
  CHECK(store.IsUnseen(1));
  store.MarkSeen(1);
  CHECK_FALSE(store.IsUnseen(1));
}

TEST_CASE("InputStore finds a write to what it keeps", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  const Floats x(1000, 1.0F);
  auto runner = bench->Load(kScale, {{"FACTOR", 2}});
  REQUIRE(runner.ok());
  InputStore store(*bench->device, 1 << 20);
  REQUIRE(*store.Keep(1, (*runner)->program(), {{"x", Bytes(x)}}));
  REQUIRE_FALSE(store.Check());
  const auto& kept = std::get<std::shared_ptr<const KeptTensor>>(store.Find(1)->find("x")->second);

  static_cast<float*>(kept->buffer->address())[GENERATE(-1, 0, 999, 1000)] = 7.0F;

  const MaybeFailure failure = store.Check();
  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kOutOfBounds);
}

TEST_CASE("A program gives the same results under load", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(kScale, {{"FACTOR", 2}});
  REQUIRE(runner.ok());

  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(Floats(1000, 1.0F))}}, 0, /*under_load=*/true));

  CHECK(FirstOutput(**runner) == Floats(1000, 3.0F));
  CHECK((*runner)->executed_seconds() == 0);
}

TEST_CASE("A write outside a buffer is found", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  const int offset = GENERATE(-1, 1000, 5000, -16000);
  CAPTURE(offset);
  const std::string text = R"(//@ mtmc 1 opencl
//@ input x f32[1000]
//@ output y f32[1000]
//@ tune OFFSET = 0
//@ launch stray grid=1000 block=1 args=(x, y)
__kernel void stray(__global const float* x, __global float* y) {
  y[get_global_id(0)] = x[get_global_id(0)];
  if (get_global_id(0) == 7) y[OFFSET] = 1.0f;
}
)";
  auto runner = bench->Load(text, {{"OFFSET", offset}});
  REQUIRE(runner.ok());

  const MaybeFailure failure = (*runner)->Execute({{"x", Bytes(Floats(1000))}}, 0x5A);

  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kOutOfBounds);
}

TEST_CASE("A changed input is found", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  const std::string text = R"(//@ mtmc 1 opencl
//@ input x f32[1000]
//@ output y f32[1000]
//@ launch spoil grid=1000 block=1 args=(x, y)
__kernel void spoil(__global const float* x, __global float* y) {
  y[get_global_id(0)] = x[get_global_id(0)];
  if (get_global_id(0) == 999) ((__global float*)x)[999] = 3.0f;
}
)";
  auto runner = bench->Load(text);
  REQUIRE(runner.ok());

  const MaybeFailure failure = (*runner)->Execute({{"x", Bytes(Floats(1000))}}, 0x5A);

  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kInputChanged);
}

TEST_CASE("What no kernel writes stays poisoned", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  const std::string text = R"(//@ mtmc 1 opencl
//@ input x f32[4]
//@ output y f32[4]
//@ launch front grid=2 block=1 args=(x, y)
__kernel void front(__global const float* x, __global float* y) {
  y[get_global_id(0)] = x[get_global_id(0)];
}
)";
  auto runner = bench->Load(text);
  REQUIRE(runner.ok());

  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(Floats(4, 1.0F))}}, 0xFF));

  const Floats y = FirstOutput(**runner);
  CHECK(y[1] == 1.0F);
  CHECK(std::isnan(y[3]));
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

TEST_CASE("A block larger than the device allows is a failed launch", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  std::string text = kScale;
  text.replace(text.find("block=(8)"), 9, "block=(1048576)");
  auto runner = bench->Load(text, {{"FACTOR", 2}});
  REQUIRE(runner.ok());

  const MaybeFailure failure = (*runner)->Execute({{"x", Bytes(Floats(1000))}}, 0);

  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kLaunch);
  CHECK_FALSE(failure->is_context_lost);
}

}  // namespace mtmc::worker

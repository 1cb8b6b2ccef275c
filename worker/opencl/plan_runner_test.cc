// SPDX-License-Identifier: Apache-2.0
#include "worker/device/plan_runner.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "worker/device/input_store.h"
#include "worker/opencl/opencl_fixture.h"

// Plans on a device that every host has.
namespace mtmc::worker {
namespace {

// Elements of a tensor whose plan is not small.
size_t LongCount(const Bench& bench) {
  return static_cast<size_t>(bench.device->facts().compute_units) << 20;
}

// kScale for so many elements.
std::string ScaleOf(size_t count) {
  std::string text = kScale;
  for (size_t at; (at = text.find("1000")) != std::string::npos;) {
    text.replace(at, 4, std::to_string(count));
  }
  return text;
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
    REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(x)}}));
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
  const size_t count = LongCount(*bench);
  auto runner = bench->Load(ScaleOf(count), {{"FACTOR", 2}});
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

TEST_CASE("Scans of several buffers are answered together", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto one = bench->device->Allocate(100);
  auto other = bench->device->Allocate(100);
  REQUIRE((one.ok() && other.ok()));
  for (auto* buffer : {&one, &other}) REQUIRE_FALSE((**buffer)->Fill(1));
  static_cast<uint8_t*>((*other)->address())[100] ^= 1;
  std::vector<BufferScan> scans = {
      {.buffer = one->get(), .with_redzones = true, .with_checksum = true},
      {.buffer = other->get(), .with_redzones = true, .with_checksum = true},
      ChecksumScan(other->get())};

  REQUIRE_FALSE(bench->device->Scan(scans));

  CHECK(scans[0].has_redzones);
  CHECK_FALSE(scans[1].has_redzones);
  CHECK(scans[2].has_redzones);
  CHECK(scans[0].checksum == scans[1].checksum);
}

TEST_CASE("A long plan is timed on kept inputs where they lie", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  const size_t count = LongCount(*bench);
  auto runner = bench->Load(ScaleOf(count), {{"FACTOR", 2}});
  REQUIRE(runner.ok());
  InputStore store(*bench->device, int64_t{1} << 32);
  REQUIRE(*store.Keep(1, (*runner)->program(), {{"x", Bytes(Floats(count, 1.0F))}}));
  REQUIRE(*store.Keep(2, (*runner)->program(), {{"x", Bytes(Floats(count, 2.0F))}}));
  // What is verified gets inputs of its own.
  REQUIRE_FALSE((*runner)->Execute(*store.Find(1), 0xA5));
  const auto kept_address = [&](int64_t id) {
    return KeptOf(store.Find(id)->find("x")->second)->buffer->address();
  };
  const auto address = [&] {
    return std::get<const Buffer*>((*runner)->FindLaunch(0)->arguments[0])->address();
  };
  CHECK(address() != kept_address(1));

  REQUIRE((*runner)->Time(/*is_cold=*/false, store.Find(2)).ok());
  CHECK(address() == kept_address(2));
  CHECK(FirstOutput(**runner)[7] == 5.0F);
  REQUIRE((*runner)->Time(/*is_cold=*/false, store.Find(1)).ok());
  CHECK(address() == kept_address(1));
  CHECK(FirstOutput(**runner)[7] == 3.0F);

  SECTION("a write to one that is not in use any more is found") {
    static_cast<float*>(const_cast<void*>(kept_address(2)))[count - 1] = 7.0F;
    const MaybeFailure failure = (*runner)->CheckMemory();
    REQUIRE(failure);
    CHECK(failure->kind == Failure::Kind::kInputChanged);
  }
  SECTION("a write beside one is found") {
    static_cast<float*>(const_cast<void*>(kept_address(1)))[count] = 7.0F;
    const MaybeFailure failure = (*runner)->CheckMemory();
    REQUIRE(failure);
    CHECK(failure->kind == Failure::Kind::kOutOfBounds);
  }
  SECTION("executions that leave them alone are none") { CHECK_FALSE((*runner)->CheckMemory()); }
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

TEST_CASE("A kernel whose name OpenCL has taken is to be renamed", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  std::string text = kScale;
  for (size_t at; (at = text.find(" scale")) != std::string::npos;) text.replace(at, 6, " step");
  const auto runner = bench->Load(text, {{"FACTOR", 2}});

  REQUIRE_FALSE(runner.ok());
  INFO(runner.failure().message);
  CHECK(runner.failure().message.find("rename the kernel") != std::string::npos);
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

}  // namespace
}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
//
// The state of a real GPU in which executions begin, and what it costs to bring it about.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <iostream>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "kernel/program/parser.h"
#include "kernel/program/stall.h"
#include "worker/device/input_store.h"
#include "worker/device/random_fill.h"
#include "worker/runner/gpu_fixture.h"

namespace mtmc::worker {
namespace {

using Words = std::vector<uint32_t>;

Words WordsOf(PlanRunner& plan, size_t index) {
  const Floats values = OutputOf(plan, index);
  Words words(values.size());
  std::memcpy(words.data(), values.data(), words.size() * sizeof words[0]);
  return words;
}

MaybeFailure Time(PlanRunner& plan, const InputSources* inputs = nullptr, bool is_cold = true) {
  const auto sample = plan.Time(is_cold, inputs);
  return sample.ok() ? MaybeFailure() : sample.failure();
}

// Of one call, in seconds of wall time.
template <typename Call>
double MeanOf(int times, const Call& call) {
  const absl::Time start = absl::Now();
  for (int i = 0; i < times; ++i) call();
  return absl::ToDoubleSeconds(absl::Now() - start) / times;
}

TEST_CASE("The words of a GPU buffer are those that the host computes", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  const auto num_words = static_cast<size_t>(GENERATE(1, 1000, 3 << 20));
  // Not a whole number of words.
  const auto bytes = static_cast<int64_t>(8 * num_words - 3);
  auto first = gpu->backend.device->Allocate(bytes);
  auto second = gpu->backend.device->Allocate(bytes);
  REQUIRE((first.ok() && second.ok()));
  const BufferFill fills[] = {{.buffer = first->get()}, {.buffer = second->get()}};

  REQUIRE_FALSE(gpu->backend.device->Randomize(fills, 99));

  std::vector<uint64_t> words(num_words);
  for (uint64_t i = 0; i < 2; ++i) {
    const auto data = std::as_writable_bytes(std::span(words)).first(static_cast<size_t>(bytes));
    REQUIRE_FALSE(fills[i].buffer->Download(data));
    bool is_equal = true;
    for (size_t k = 0; k + 1 < num_words; ++k) {
      is_equal &= words[k] == RandomWord(StreamOf(99, i), kRedzoneBytes / 8 + k);
    }
    CHECK(is_equal);
  }
}

TEST_CASE("One byte around a GPU buffer is found, and not one in it", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  Device& device = *gpu->backend.device;
  auto buffer = device.Allocate(1000);
  REQUIRE(buffer.ok());
  const BufferFill fill{.buffer = buffer->get(), .with_tensor = GENERATE(true, false)};
  auto damage = [&](int64_t offset) {
    auto byte = device.Wrap(static_cast<std::byte*>((*buffer)->address()) + offset, 1);
    REQUIRE(byte.ok());
    std::byte old{};
    REQUIRE_FALSE((*byte)->Download({&old, 1}));
    REQUIRE_FALSE((*byte)->Fill(static_cast<uint8_t>(old ^ std::byte{1})));
  };
  auto is_intact = [&] {
    BufferScan scan{.buffer = buffer->get(), .with_redzones = true};
    REQUIRE_FALSE(device.Scan({&scan, 1}));
    return scan.has_redzones;
  };
  REQUIRE_FALSE(device.Randomize({&fill, 1}, 5));
  REQUIRE(is_intact());
  for (const int64_t offset : {0, 500, 999}) damage(offset);
  REQUIRE(is_intact());

  // The last one lies behind the redzone, at the end of the page.
  const int64_t offset = GENERATE(-65536, -1, 1000, 66535, (2 << 20) - 65536 - 1);
  CAPTURE(offset);
  damage(offset);

  CHECK_FALSE(is_intact());
  // When it is filled anew, too; once.
  REQUIRE_FALSE(device.Randomize({&fill, 1}, 6));
  BufferScan scan{.buffer = buffer->get(), .with_redzones = true};
  const MaybeFailure failure = device.Scan({&scan, 1});
  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kOutOfBounds);
  CHECK(is_intact());
}

TEST_CASE("More buffers than one launch takes are filled", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<BufferFill> fills;
  for (int i = 0; i < 150; ++i) {
    auto buffer = gpu->backend.device->Allocate(8);
    REQUIRE(buffer.ok());
    buffers.push_back(*std::move(buffer));
    fills.push_back({.buffer = buffers.back().get()});
  }

  REQUIRE_FALSE(gpu->backend.device->Randomize(fills, 3));

  bool is_equal = true;
  for (uint64_t i = 0; i < fills.size(); ++i) {
    uint64_t word = 0;
    REQUIRE_FALSE(buffers[i]->Download(std::as_writable_bytes(std::span(&word, 1))));
    is_equal &= word == RandomWord(StreamOf(3, i), kRedzoneBytes / 8);
  }
  CHECK(is_equal);
}

// Copies words of its surroundings and of memory that nobody wrote.
constexpr char kLook[] = R"(//@ mtmc 1 cuda
//@ input  x f32[1024]
//@ buffer h f32[1024]
//@ output y f32[1024]
//@ output z f32[1536]
//@ launch look grid=1 block=256 args=(x, h, y, z)
extern "C" __global__ void look(const unsigned* x, const unsigned* h, unsigned* y, unsigned* z) {
  int i = threadIdx.x;
  z[i] = x[i - 256];
  z[i + 256] = x[i + 1024];
  z[i + 512] = y[i - 256];
  z[i + 768] = y[i + 1024];
  z[i + 1024] = h[i];
  z[i + 1280] = y[i];
}
)";

std::string Capturing(std::string text) {
  return text.insert(text.find('\n') + 1, "//@ capture\n");
}

TEST_CASE("A program on the GPU finds other words at each execution", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto plan = gpu->Load(GENERATE(0, 1) == 0 ? std::string(kLook) : Capturing(kLook));
  INFO((plan.ok() ? "" : plan.failure().message));
  REQUIRE(plan.ok());
  InputStore store(*gpu->backend.device, int64_t{1} << 20);
  REQUIRE(*store.Keep(1, (*plan)->program(), {{"x", Bytes(Floats(1024, 1.0F))}}));
  std::set<uint32_t> found;
  auto look = [&](const MaybeFailure& failure) {
    REQUIRE_FALSE(failure);
    const Words words = WordsOf(**plan, 1);
    found.insert(words.begin(), words.end());
  };

  look((*plan)->Execute(*store.Find(1)));
  look((*plan)->Execute(*store.Find(1), 0, /*under_load=*/true));
  look(Time(**plan, store.Find(1)));
  look(Time(**plan));
  look(Time(**plan, store.Find(1), /*is_cold=*/false));
  REQUIRE_FALSE((*plan)->Shuffle());
  look(Time(**plan));

  CHECK(found.size() > 6 * 1536 - 10);
  CHECK_FALSE((*plan)->CheckMemory());
}

TEST_CASE("A write outside in the middle of a timed block on the GPU is found", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto plan = gpu->Load(R"(//@ mtmc 1 cuda
//@ input x f32[64]
//@ output y f32[64]
//@ launch stray grid=1 block=64 args=(x, y)
extern "C" __global__ void stray(const float* x, float* y) {
  int i = threadIdx.x;
  y[i] = x[i];
  if (i == 0 && x[0] != 0) y[(int)x[0]] = 1.0f;
}
)");
  REQUIRE(plan.ok());
  Floats stray(64);
  // The last one lies behind the redzone.
  stray[0] = GENERATE(-1.0F, 64.0F, 100000.0F);
  CAPTURE(stray[0]);
  InputStore store(*gpu->backend.device, int64_t{1} << 20);
  REQUIRE(*store.Keep(1, (*plan)->program(), {{"x", Bytes(Floats(64))}}));
  REQUIRE(*store.Keep(2, (*plan)->program(), {{"x", Bytes(stray)}}));
  REQUIRE_FALSE((*plan)->Execute(*store.Find(1)));
  REQUIRE_FALSE((*plan)->Shuffle());

  for (const int64_t id : {1, 2, 1, 1}) REQUIRE_FALSE(Time(**plan, store.Find(id)));

  const MaybeFailure failure = (*plan)->CheckMemory();
  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kOutOfBounds);
  CHECK_FALSE((*plan)->CheckMemory());
}

// Counts what is found of a mark in MEMORY, and leaves the mark there. One block for each
// multiprocessor, so that none finds what another one of its launch has left.
std::string MarkingProgram(const Gpu& gpu, const std::string& memory, int threads,
                           const std::string& first, const std::string& step,
                           const std::string& words, int shared = 0) {
  return absl::StrReplaceAll(R"(//@ mtmc 1 cuda
//@ input x f32[256]
//@ output y f32[BLOCKS]
//@ launch look grid=BLOCKS block=THREADS shared=SHARED args=(x, y)
extern "C" __global__ void look(const float* x, float* y) {
  MEMORY
  unsigned found = 0;
  bool was_marked = false;
  for (int i = FIRST; i < WORDS; i += STEP) {
    const bool is_marked = words[i] == 0x5ca1ab1e;
    found += is_marked && was_marked;
    was_marked = is_marked;
  }
  for (int i = FIRST; i < WORDS; i += STEP) words[i] = 0x5ca1ab1e;
  found = __syncthreads_count(found != 0);
  if (threadIdx.x == 0) y[blockIdx.x] = x[0] * found;
}
)",
                             {{"MEMORY", memory},
                              {"BLOCKS", absl::StrCat(gpu.backend.facts.compute_units)},
                              {"THREADS", absl::StrCat(threads)},
                              {"SHARED", absl::StrCat(shared)},
                              {"FIRST", first},
                              {"STEP", step},
                              {"WORDS", words}});
}

// Threads that found a mark, over some executions for either purpose.
double CountMarks(Gpu& gpu, const std::string& text) {
  auto plan = gpu.Load(text);
  INFO((plan.ok() ? "" : plan.failure().message));
  REQUIRE(plan.ok());
  const Floats x(256, 1.0F);
  double found = 0;
  auto look = [&](const MaybeFailure& failure) {
    REQUIRE_FALSE(failure);
    const Floats y = OutputOf(**plan);
    found += std::accumulate(y.begin(), y.end(), 0.0);
  };
  for (int i = 0; i < 3; ++i) {
    look((*plan)->Execute({{"x", Bytes(x)}}));
    look(Time(**plan));
  }
  return found;
}

TEST_CASE("No execution finds anything in shared memory", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  const auto shared = static_cast<int>(gpu->backend.facts.shared_memory_per_block_bytes);

  SECTION("that is static") {
    CHECK(CountMarks(*gpu, MarkingProgram(*gpu, "__shared__ volatile unsigned words[12288];", 256,
                                          "threadIdx.x", "256", "12288")) == 0);
  }
  SECTION("that is all there is") {
    CHECK(CountMarks(*gpu,
                     MarkingProgram(*gpu, "extern __shared__ volatile unsigned words[];", 1024,
                                    "threadIdx.x", "1024", absl::StrCat(shared / 4), shared)) == 0);
  }
}

TEST_CASE("No execution finds anything in local memory, however much", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  const int words = GENERATE(64, 500, 3000, 12000);
  CAPTURE(words);

  CHECK(CountMarks(*gpu, MarkingProgram(*gpu, absl::StrCat("volatile unsigned words[", words, "];"),
                                        1024, "0", "1", absl::StrCat(words))) == 0);
}

// Every block waits for all others, one for each multiprocessor and more.
constexpr char kBarrier[] = R"(//@ mtmc 1 cuda
//@ input x f32[256]
//@ buffer n i32[1]
//@ output y f32[256]
//@ launch zero grid=1 block=32 args=(n)
//@ launch meet grid=256 block=64 args=(x, n, y)
extern "C" __global__ void zero(int* n) { if (threadIdx.x == 0) *n = 0; }
extern "C" __global__ void meet(const float* x, int* n, float* y) {
  if (threadIdx.x == 0) {
    atomicAdd(n, 1);
    while (atomicAdd(n, 0) < 256) {}
    y[blockIdx.x] = x[blockIdx.x] + 1;
  }
}
)";

TEST_CASE("A program whose blocks wait for each other ends under load", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto plan = gpu->Load(kBarrier);
  REQUIRE(plan.ok());
  const Floats x(256, 1.0F);

  const absl::Time start = absl::Now();
  const MaybeFailure failure = (*plan)->Execute({{"x", Bytes(x)}}, 0, /*under_load=*/true);

  std::cout << absl::StrFormat("-- under load: %.2f ms\n",
                               absl::ToDoubleMilliseconds(absl::Now() - start));
  CHECK_FALSE(failure);
  CHECK(OutputOf(**plan) == Floats(256, 2.0F));
}

// Block 0 sleeps where it should wait for the others.
constexpr char kSleeper[] = R"(//@ mtmc 1 cuda
//@ input x f32[256]
//@ buffer h f32[64]
//@ output y f32[64]
//@ launch pass grid=64 block=64 args=(x, h, y)
extern "C" __global__ void pass(const float* x, volatile float* h, float* y) {
  if (threadIdx.x != 0) return;
  h[blockIdx.x] = x[blockIdx.x];
  if (blockIdx.x != 0) return;
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - start < 1000000);
  for (int i = 0; i < 64; ++i) y[i] = h[i];
}
)";

// The load alone does not show it: 0 of 20 on an H100.
TEST_CASE("A program that sleeps instead of waiting is wrong when blocks begin late", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  const kernel::ParseResult parsed = kernel::ParseProgram(kSleeper);
  REQUIRE(parsed.program);
  const Floats x(256, 1.0F);
  int wrong = 0;
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    auto plan = gpu->Load(kernel::WithStalledBlocks(*parsed.program, seed));
    REQUIRE(plan.ok());
    REQUIRE_FALSE((*plan)->Execute({{"x", Bytes(x)}}));
    wrong += OutputOf(**plan) == Floats(64, 1.0F) ? 0 : 1;
  }

  std::cout << "-- wrong when blocks begin late: " << wrong << " of 5\n";
  CHECK(wrong > 0);
}

TEST_CASE("An execution of a short program costs little more than its conditions", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto plan = gpu->Load(kLook);
  REQUIRE(plan.ok());
  Device& device = *gpu->backend.device;
  InputStore store(device, int64_t{1} << 20);
  REQUIRE(*store.Keep(1, (*plan)->program(), {{"x", Bytes(Floats(1024, 1.0F))}}));
  const InputSources& inputs = *store.Find(1);
  for (int i = 0; i < 3; ++i) REQUIRE_FALSE((*plan)->Execute(inputs));
  auto buffer = device.Allocate(int64_t{1} << 30);
  REQUIRE(buffer.ok());
  const BufferFill fill{.buffer = buffer->get()};
  auto randomize = [&] {
    REQUIRE_FALSE(device.Randomize({&fill, 1}, DrawSeed()));
    REQUIRE_FALSE(device.Synchronize());
  };
  randomize();

  const double executed = MeanOf(100, [&] { REQUIRE_FALSE((*plan)->Execute(inputs)); });
  const double timed = MeanOf(100, [&] { REQUIRE_FALSE(Time(**plan, &inputs)); });
  const double checked = MeanOf(100, [&] { REQUIRE_FALSE((*plan)->CheckMemory()); });
  const double loaded = MeanOf(100, [&] { REQUIRE_FALSE((*plan)->Execute(inputs, 0, true)); });
  const double filled = MeanOf(20, randomize);

  std::cout << absl::StrFormat(
      "-- executed in %.0f us, timed in %.0f us, checked in %.0f us, under load in %.2f ms; random "
      "words at %.0f GB/s\n",
      1e6 * executed, 1e6 * timed, 1e6 * checked, 1e3 * loaded, 1.0737 / filled);
  CHECK(executed < 600e-6);
  CHECK(timed < 500e-6);
  CHECK(loaded < 10e-3);
  CHECK(1.0737e9 / filled > 0.3 * gpu->backend.facts.memory_bandwidth_bytes_per_second);
}

}  // namespace
}  // namespace mtmc::worker

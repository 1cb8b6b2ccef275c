// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "worker/device/input_store.h"
#include "worker/device/random_fill.h"
#include "worker/opencl/opencl_fixture.h"

// The state of the memory in which executions begin, on a device that every host has.
namespace mtmc::worker {
namespace {

// Copies words of its surroundings and of memory that nobody wrote, and leaves half of its
// output.
constexpr char kLook[] = R"(//@ mtmc 1 opencl
//@ input  x f32[1000]
//@ buffer h i32[1000]
//@ output y i32[1000]
//@ output z i32[600]
//@ launch look grid=100 block=1 args=(x, h, y, z)
__kernel void look(__global const float* x, __global const uint* h, __global uint* y,
                   __global uint* z) {
  int i = get_global_id(0);
  z[i] = ((__global const uint*)x)[i - 100];
  z[i + 100] = ((__global const uint*)x)[i + 1000];
  z[i + 200] = y[i - 100];
  z[i + 300] = y[i + 1000];
  z[i + 400] = h[i];
  z[i + 500] = y[i];
}
)";

using Words = std::vector<uint32_t>;

Words Outputs(PlanRunner& runner, size_t index) {
  auto outputs = runner.Outputs();
  REQUIRE(outputs.ok());
  Words words(static_cast<size_t>((*outputs)[index].tensor->type.elements()));
  REQUIRE_FALSE((*outputs)[index].buffer->Download(std::as_writable_bytes(std::span(words))));
  return words;
}

TEST_CASE("A program finds other words at each execution, whatever it is for", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(kLook);
  REQUIRE(runner.ok());
  const Floats x(1000, 1.0F);
  InputStore store(*bench->device, int64_t{1} << 20);
  REQUIRE(*store.Keep(1, (*runner)->program(), {{"x", Bytes(x)}}));

  std::multiset<uint32_t> found;
  size_t num_words = 0;
  auto look = [&](const MaybeFailure& failure) {
    REQUIRE_FALSE(failure);
    for (const size_t index : {size_t{0}, size_t{1}}) {
      const Words words = Outputs(**runner, index);
      // Of y, only what no execution writes.
      found.insert(words.begin(), words.end());
      num_words += words.size();
    }
  };
  auto time = [&](bool is_cold) -> MaybeFailure {
    const auto sample = (*runner)->Time(is_cold, store.Find(1));
    return sample.ok() ? MaybeFailure() : sample.failure();
  };
  look((*runner)->Execute(*store.Find(1)));
  look((*runner)->Execute(*store.Find(1), 0, /*under_load=*/true));
  look(time(/*is_cold=*/true));
  look(time(/*is_cold=*/true));
  look(time(/*is_cold=*/false));
  REQUIRE_FALSE((*runner)->Shuffle());
  look(time(/*is_cold=*/true));

  // Each execution copies 200 of the words that it finds in y: once in y itself, once in z.
  const std::set<uint32_t> distinct(found.begin(), found.end());
  CHECK(num_words == 6 * 1600);
  CHECK(num_words - distinct.size() >= 6 * 100);
  CHECK(num_words - distinct.size() < 6 * 100 + 10);
  CHECK_FALSE((*runner)->CheckMemory());
}

TEST_CASE("Words beside a tensor are like those in it", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(kLook);
  REQUIRE(runner.ok());

  REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(Floats(1000, 1.0F))}}));

  // Every word of z is a copy of one that was found, in six places.
  const Words z = Outputs(**runner, 1);
  std::vector<int> bits;
  for (size_t place = 0; place < 6; ++place) {
    int set = 0;
    for (size_t i = 0; i < 100; ++i) set += __builtin_popcount(z[100 * place + i]);
    bits.push_back(set);
  }
  // 3,200 fair coins each, give or take six standard deviations.
  for (const int set : bits) CHECK(std::abs(set - 1600) < 170);
}

TEST_CASE("A seed gives the same words each time, and another seed others", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(kLook);
  REQUIRE(runner.ok());
  const Floats x(1000, 1.0F);
  auto words = [&](uint64_t seed) {
    REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(x)}}, seed));
    return Outputs(**runner, 1);
  };

  const Words first = words(7);

  CHECK(words(7) == first);
  CHECK(words(8) != first);
  CHECK(words(0) != first);
  CHECK(words(0) != words(0));
}

TEST_CASE("The words of a buffer are those that the host computes", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto buffer = bench->device->Allocate(8000);
  REQUIRE(buffer.ok());
  const BufferFill fill{.buffer = buffer->get()};

  REQUIRE_FALSE(bench->device->Randomize({&fill, 1}, 99));

  std::vector<uint64_t> words(1000);
  REQUIRE_FALSE((*buffer)->Download(std::as_writable_bytes(std::span(words))));
  const uint64_t first = kRedzoneBytes / 8;
  bool is_equal = true;
  for (uint64_t i = 0; i < 1000; ++i) {
    is_equal &= words[i] == RandomWord(StreamOf(99, 0), first + i);
  }
  CHECK(is_equal);
  CHECK((*buffer)->stream() == StreamOf(99, 0));
}

TEST_CASE("What a program reads before it is written makes two digests differ", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  // One element of scratch that nobody has set.
  auto runner = bench->Load(R"(//@ mtmc 1 opencl
//@ input  x f32[64]
//@ buffer h i32[1]
//@ output y i32[64]
//@ launch add grid=64 block=1 args=(x, h, y)
__kernel void add(__global const float* x, __global uint* h, __global uint* y) {
  y[get_global_id(0)] = (uint)x[get_global_id(0)] + h[0];
}
)");
  REQUIRE(runner.ok());
  std::set<uint64_t> digests;

  for (int i = 0; i < 4; ++i) {
    REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(Floats(64, 1.0F))}}));
    digests.insert(*(*runner)->Digest());
    REQUIRE((*runner)->Time(/*is_cold=*/true).ok());
    digests.insert(*(*runner)->Digest());
  }

  CHECK(digests.size() == 8);
}

// Writes beside its output where x[0] says so.
constexpr char kStray[] = R"(//@ mtmc 1 opencl
//@ input x f32[64]
//@ output y f32[64]
//@ launch stray grid=64 block=1 args=(x, y)
__kernel void stray(__global const float* x, __global float* y) {
  int i = get_global_id(0);
  y[i] = x[i];
  if (i == 0 && x[0] != 0) y[(int)x[0]] = 1.0f;
}
)";

TEST_CASE("A write outside in the middle of a timed block is found", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(kStray);
  REQUIRE(runner.ok());
  const float offset = GENERATE(-1.0F, 64.0F, 17000.0F);
  CAPTURE(offset);
  Floats stray(64);
  stray[0] = offset;
  InputStore store(*bench->device, int64_t{1} << 20);
  REQUIRE(*store.Keep(1, (*runner)->program(), {{"x", Bytes(Floats(64))}}));
  REQUIRE(*store.Keep(2, (*runner)->program(), {{"x", Bytes(stray)}}));
  REQUIRE_FALSE((*runner)->Execute(*store.Find(1)));
  REQUIRE_FALSE((*runner)->Shuffle());

  for (const int64_t id : {1, 2, 1, 1}) {
    REQUIRE((*runner)->Time(/*is_cold=*/false, store.Find(id)).ok());
  }

  const MaybeFailure failure = (*runner)->CheckMemory();
  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kOutOfBounds);
  // Once.
  CHECK_FALSE((*runner)->CheckMemory());
}

TEST_CASE("What a program has written outside is not the next one's fault", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  Floats stray(64);
  stray[0] = 64;
  {
    auto runner = bench->Load(kStray);
    REQUIRE(runner.ok());
    REQUIRE((*runner)->Execute({{"x", Bytes(stray)}}));
    REQUIRE((*runner)->Time(/*is_cold=*/false).ok());
    REQUIRE((*runner)->Time(/*is_cold=*/false).ok());
  }

  auto next = bench->Load(kStray);

  REQUIRE(next.ok());
  CHECK_FALSE((*next)->Execute({{"x", Bytes(Floats(64))}}));
}

TEST_CASE("No execution finds anything in local or private memory", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  const std::string memory =
      GENERATE("__local volatile uint words[8192];", "volatile uint words[8192];");
  CAPTURE(memory);
  auto runner = bench->Load(R"(//@ mtmc 1 opencl
//@ input x f32[4]
//@ output y f32[4]
//@ launch look grid=4 block=1 args=(x, y)
__kernel void look(__global const float* x, __global float* y) {
)" + memory + R"(
  int found = 0;
  for (int i = 0; i < 8192; ++i) found += words[(i + (int)x[0]) % 8192] == 0x5ca1ab1e;
  // The work-groups of this launch come one after the other.
  if (get_group_id(0) != 3) found = 0;
  if (get_group_id(0) == 3) {
    for (int i = 0; i < 8192; ++i) words[(i + (int)x[0]) % 8192] = 0x5ca1ab1e;
  }
  y[get_group_id(0)] = found;
}
)");
  REQUIRE(runner.ok());
  float found = 0;

  for (int i = 0; i < 4; ++i) {
    REQUIRE_FALSE((*runner)->Execute({{"x", Bytes(Floats(4))}}));
    for (const float count : FirstOutput(**runner)) found += count;
    REQUIRE((*runner)->Time(/*is_cold=*/true).ok());
    for (const float count : FirstOutput(**runner)) found += count;
  }

  CHECK(found == 0);
}

}  // namespace
}  // namespace mtmc::worker

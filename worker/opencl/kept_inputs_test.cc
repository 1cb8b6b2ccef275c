// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <memory>

#include "worker/device/content_cache.h"
#include "worker/device/input_store.h"
#include "worker/opencl/opencl_fixture.h"

// Inputs that are kept, on a device that every host has.
namespace mtmc::worker {
namespace {

// A tensor of kScale, and room for as many as there has to be room for.
constexpr int64_t kBytes = 4000;
constexpr int64_t kRoom = ContentCache::kLeastCopies * kBytes;

TEST_CASE("ContentCache copies a content once", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(kScale, {{"FACTOR", 2}});
  REQUIRE(runner.ok());
  const kernel::Tensor& x = *(*runner)->program().FindTensor("x");
  const Floats ones(1000, 1.0F);
  ContentCache cache(*bench->device, kRoom);
  CHECK(cache.is_empty());

  auto copy = cache.Keep(5, x, Bytes(ones));

  REQUIRE(copy.ok());
  CHECK(cache.Find(5, kBytes) == *copy);
  CHECK(cache.Find(6, kBytes) == nullptr);
  // Another program may declare another size.
  CHECK(cache.Find(5, 400) == nullptr);
  // 0 is no number.
  CHECK(*cache.Keep(0, x, Bytes(ones)) == nullptr);
  for (uint64_t content = 6; content < 5 + ContentCache::kLeastCopies; ++content) {
    CHECK(*cache.Keep(content, x, Bytes(ones)) != nullptr);
  }
  CHECK(*cache.Keep(99, x, Bytes(ones)) == nullptr);
  cache.Clear();
  CHECK(*cache.Keep(99, x, Bytes(ones)) != nullptr);
}

TEST_CASE("ContentCache leaves large tensors alone", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(kScale, {{"FACTOR", 2}});
  REQUIRE(runner.ok());
  const Floats ones(1000, 1.0F);
  ContentCache cache(*bench->device, kRoom - 1);

  CHECK(*cache.Keep(1, *(*runner)->program().FindTensor("x"), Bytes(ones)) == nullptr);
}

TEST_CASE("ContentCache sweeps out what nobody has asked for in a while", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(kScale, {{"FACTOR", 2}});
  REQUIRE(runner.ok());
  const kernel::Tensor& x = *(*runner)->program().FindTensor("x");
  const Floats ones(1000, 1.0F);
  ContentCache cache(*bench->device, kRoom);
  for (uint64_t content = 1; content <= ContentCache::kLeastCopies; ++content) {
    REQUIRE(*cache.Keep(content, x, Bytes(ones)) != nullptr);
  }

  for (int i = 0; i < ContentCache::kMostUnasked; ++i) {
    cache.Sweep();
    CHECK(cache.Find(1, kBytes) != nullptr);
  }
  CHECK(*cache.Keep(99, x, Bytes(ones)) == nullptr);
  cache.Sweep();

  CHECK(cache.Find(1, kBytes) != nullptr);
  CHECK(cache.Find(2, kBytes) == nullptr);
  // Its room is free.
  CHECK(*cache.Keep(99, x, Bytes(ones)) != nullptr);
}

TEST_CASE("ContentCache drops what is damaged", "[opencl]") {
  auto bench = Bench::Find();
  if (!bench) return;
  auto runner = bench->Load(kScale, {{"FACTOR", 2}});
  REQUIRE(runner.ok());
  const kernel::Tensor& x = *(*runner)->program().FindTensor("x");
  const Floats ones(1000, 1.0F);
  ContentCache cache(*bench->device, 1 << 20);
  for (const uint64_t content : {1, 2}) REQUIRE(*cache.Keep(content, x, Bytes(ones)) != nullptr);
  const auto damaged = cache.Find(2, kBytes);
  CHECK_FALSE(*cache.DropDamaged());

  static_cast<float*>(damaged->buffer->address())[GENERATE(-1, 0, 999, 1000)] = 7.0F;
  CHECK(*cache.DropDamaged());

  CHECK(cache.Find(1, kBytes) != nullptr);
  CHECK(cache.Find(2, kBytes) == nullptr);
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

}  // namespace
}  // namespace mtmc::worker

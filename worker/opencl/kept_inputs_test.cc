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

// A program on a device, and its input.
struct Subject {
  std::unique_ptr<Bench> bench = Bench::Find();
  std::unique_ptr<PlanRunner> runner;
  const kernel::Tensor* x = nullptr;
  const Floats ones = Floats(1000, 1.0F);

  // Null where the host has no OpenCL.
  static std::unique_ptr<Subject> Find() {
    auto subject = std::make_unique<Subject>();
    if (!subject->bench) return nullptr;
    auto runner = subject->bench->Load(kScale, {{"FACTOR", 2}});
    REQUIRE(runner.ok());
    subject->runner = *std::move(runner);
    subject->x = subject->runner->program().FindTensor("x");
    return subject;
  }

  bool Keep(ContentCache& cache, uint64_t content) const {
    return *cache.Keep(content, *x, Bytes(ones)) != nullptr;
  }
};

TEST_CASE("ContentCache copies a content once", "[opencl]") {
  const auto subject = Subject::Find();
  if (!subject) return;
  ContentCache cache(*subject->bench->device, kRoom);
  CHECK(cache.is_empty());

  auto copy = cache.Keep(5, *subject->x, Bytes(subject->ones));

  REQUIRE(copy.ok());
  CHECK(cache.Find(5, kBytes) == *copy);
  CHECK(cache.Find(6, kBytes) == nullptr);
  // Another program may declare another size.
  CHECK(cache.Find(5, 400) == nullptr);
  // 0 is no number.
  CHECK_FALSE(subject->Keep(cache, 0));
  for (uint64_t content = 6; content < 5 + ContentCache::kLeastCopies; ++content) {
    CHECK(subject->Keep(cache, content));
  }
  CHECK_FALSE(subject->Keep(cache, 99));
  cache.Clear();
  CHECK(subject->Keep(cache, 99));
}

TEST_CASE("ContentCache leaves large tensors alone", "[opencl]") {
  const auto subject = Subject::Find();
  if (!subject) return;
  ContentCache cache(*subject->bench->device, kRoom - 1);

  CHECK_FALSE(subject->Keep(cache, 1));
}

TEST_CASE("ContentCache sweeps out what nobody has asked for in a while", "[opencl]") {
  const auto subject = Subject::Find();
  if (!subject) return;
  ContentCache cache(*subject->bench->device, kRoom);
  for (uint64_t content = 1; content <= ContentCache::kLeastCopies; ++content) {
    REQUIRE(subject->Keep(cache, content));
  }

  for (int i = 0; i < ContentCache::kMostUnasked; ++i) {
    cache.Sweep();
    CHECK(cache.Find(1, kBytes) != nullptr);
  }
  CHECK_FALSE(subject->Keep(cache, 99));
  cache.Sweep();

  CHECK(cache.Find(1, kBytes) != nullptr);
  CHECK(cache.Find(2, kBytes) == nullptr);
  // Its room is free.
  CHECK(subject->Keep(cache, 99));
}

TEST_CASE("ContentCache drops what is damaged", "[opencl]") {
  const auto subject = Subject::Find();
  if (!subject) return;
  ContentCache cache(*subject->bench->device, 1 << 20);
  for (const uint64_t content : {1, 2}) REQUIRE(subject->Keep(cache, content));
  const auto damaged = cache.Find(2, kBytes);
  CHECK_FALSE(*cache.DropDamaged());

  static_cast<float*>(damaged->buffer->address())[GENERATE(-1, 0, 999, 1000)] = 7.0F;
  CHECK(*cache.DropDamaged());

  CHECK(cache.Find(1, kBytes) != nullptr);
  CHECK(cache.Find(2, kBytes) == nullptr);
}

TEST_CASE("InputStore refuses what does not fit", "[opencl]") {
  const auto subject = Subject::Find();
  if (!subject) return;
  const Floats& x = subject->ones;
  const Floats z(1000, 3.0F);
  InputStore store(*subject->bench->device, 9000);

  CHECK(*store.Keep(1, subject->runner->program(), {{"x", Bytes(x)}}));
  CHECK(*store.Keep(2, subject->runner->program(), {{"x", Bytes(z)}}));
  CHECK_FALSE(*store.Keep(3, subject->runner->program(), {{"x", Bytes(Floats(1000, 4.0F))}}));

  CHECK(store.Find(3) == nullptr);
  CHECK(store.IsUnseen(1));
  store.MarkSeen(1);
  CHECK_FALSE(store.IsUnseen(1));
}

TEST_CASE("InputStore finds a write to what it keeps", "[opencl]") {
  const auto subject = Subject::Find();
  if (!subject) return;
  const Floats& x = subject->ones;
  InputStore store(*subject->bench->device, 1 << 20);
  REQUIRE(*store.Keep(1, subject->runner->program(), {{"x", Bytes(x)}}));
  REQUIRE_FALSE(store.Check());
  const auto kept = KeptOf(store.Find(1)->find("x")->second);

  static_cast<float*>(kept->buffer->address())[GENERATE(-1, 0, 999, 1000)] = 7.0F;

  const MaybeFailure failure = store.Check();
  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kOutOfBounds);
}

}  // namespace
}  // namespace mtmc::worker

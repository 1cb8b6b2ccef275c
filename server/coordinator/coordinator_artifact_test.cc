// SPDX-License-Identifier: Apache-2.0
//
// Artifacts that are far away, away for a while, or damaged.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/testing/status_matchers.h"
#include "server/coordinator/coordinator_fixture.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;

// Another store, whose reads and writes wait while it is closed, and fail while it is away.
class FarArtifacts final : public store::ArtifactStore {
 public:
  explicit FarArtifacts(std::unique_ptr<store::ArtifactStore> store) : store_(std::move(store)) {}

  void SetClosed(bool is_closed) {
    const absl::MutexLock lock(&mu_);
    is_closed_ = is_closed;
  }

  void SetAway(bool is_away) {
    const absl::MutexLock lock(&mu_);
    is_away_ = is_away;
  }

  // Until a call waits or has failed.
  void AwaitCall() {
    const absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](int* calls) { return *calls > 0; }, &held_up_));
  }

  absl::StatusOr<std::unique_ptr<store::ArtifactWriter>> CreateWriter(
      const v1::Digest& digest) override {
    const absl::Status status = Pass();
    if (!status.ok()) return status;
    return store_->CreateWriter(digest);
  }

  absl::StatusOr<bool> Contains(const v1::Digest& digest) override {
    return store_->Contains(digest);
  }

  absl::Status Read(const v1::Digest& digest, int64_t offset,
                    const store::ArtifactSink& sink) override {
    const absl::Status status = Pass();
    return status.ok() ? store_->Read(digest, offset, sink) : status;
  }

  absl::Status List(const std::function<absl::Status(const store::StoredBlob&)>& take) override {
    return store_->List(take);
  }

  absl::Status Remove(const v1::Digest& digest) override { return store_->Remove(digest); }

 private:
  absl::Status Pass() {
    const absl::MutexLock lock(&mu_);
    if (is_closed_ || is_away_) ++held_up_;
    mu_.Await(absl::Condition(
        +[](bool* is_closed) { return !*is_closed; }, &is_closed_));
    return is_away_ ? absl::UnavailableError("away") : absl::OkStatus();
  }

  const std::unique_ptr<store::ArtifactStore> store_;
  absl::Mutex mu_;
  bool is_closed_ ABSL_GUARDED_BY(mu_) = false;
  bool is_away_ ABSL_GUARDED_BY(mu_) = false;
  int held_up_ ABSL_GUARDED_BY(mu_) = 0;
};

FarArtifacts& MoveAway(World& world) {
  auto far = std::make_unique<FarArtifacts>(std::move(world.artifacts));
  FarArtifacts& artifacts = *far;
  world.artifacts = std::move(far);
  return artifacts;
}

}  // namespace

TEST_CASE("Coordinator answers while an artifact is on its way", "[coordinator]") {
  World world;
  FarArtifacts& artifacts = MoveAway(world);
  world.StartWithWorker();
  const v1::CreateJobRequest request = world.Request();
  artifacts.SetClosed(true);
  world.Create(request);
  artifacts.AwaitCall();
  const absl::Time start = absl::Now();

  CHECK_THAT(world.coordinator->ListWorkers().status(), IsOk());
  CHECK_THAT(world.coordinator->PauseJob(kJob).status(), IsOk());
  CHECK_THAT(world.coordinator->ResumeJob(kJob).status(), IsOk());
  CHECK(absl::Now() - start < absl::Seconds(5));

  artifacts.SetClosed(false);
  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
}

TEST_CASE("Coordinator's jobs wait for artifacts that are away and end the same", "[coordinator]") {
  World usual;
  usual.StartWithWorker();
  usual.Create(usual.Request());
  usual.AwaitEnd();
  World world;
  FarArtifacts& artifacts = MoveAway(world);
  world.StartWithWorker();
  const v1::CreateJobRequest request = world.Request();
  artifacts.SetAway(true);
  world.Create(request);
  artifacts.AwaitCall();
  for (int i = 0; i < 20; ++i) world.Turn();
  CHECK_FALSE(world.memory.LookupJob(kJob)->has_end_time());

  artifacts.SetAway(false);

  world.AwaitEnd();
  CHECK(Essence(world) == Essence(usual));
}

}  // namespace mtmc::coordinator

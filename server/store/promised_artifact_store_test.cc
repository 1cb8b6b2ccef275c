// SPDX-License-Identifier: Apache-2.0
#include "server/store/promised_artifact_store.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/rpc/error.h"
#include "common/testing/fake_clock.h"
#include "common/testing/status_matchers.h"
#include "server/store/artifact_makers.h"

namespace mtmc::store {

using testing::IsOk;

TEST_CASE("PromisedArtifactStore keeps what somebody was told is there", "[store]") {
  FolderMaker maker;
  testing::FakeClock clock;
  PromisedArtifactStore store(maker.Open(), absl::Hours(1), clock);
  for (const char* blob : {"asked", "sent", "sent again", "left"}) {
    REQUIRE_THAT(store.Put(blob).status(), IsOk());
  }
  clock.Advance(absl::Hours(2));

  CHECK(*store.Contains(DigestOf("asked")));
  const auto writer = *store.CreateWriter(DigestOf("sent"));
  REQUIRE_THAT(store.Put("sent again").status(), IsOk());

  for (const char* blob : {"asked", "sent", "sent again"}) {
    CHECK(rpc::ErrorReason(store.Remove(DigestOf(blob))) == "ARTIFACT_PROMISED");
  }
  CHECK_THAT(store.Remove(DigestOf("left")), IsOk());
  CHECK_FALSE(*store.Contains(DigestOf("left")));
  clock.Advance(absl::Hours(2));
  CHECK_THAT(store.Remove(DigestOf("asked")), IsOk());
}

TEST_CASE("PromisedArtifactStore forgets what is remembered of a blob before it goes", "[store]") {
  FolderMaker maker;
  testing::FakeClock clock;
  std::vector<std::string> forgotten;
  absl::Status answer;
  PromisedArtifactStore store(maker.Open(), absl::Hours(1), clock, [&](const std::string& sha256) {
    forgotten.push_back(sha256);
    return answer;
  });
  const v1::Digest digest = *store.Put("blob");

  CHECK(rpc::ErrorReason(store.Remove(digest)) == "ARTIFACT_PROMISED");
  CHECK(forgotten.empty());

  clock.Advance(absl::Hours(2));
  answer = absl::UnavailableError("away");
  CHECK(store.Remove(digest) == answer);
  // Read does not ask for it.
  CHECK_THAT(ReadWhole(store, digest, 100).status(), IsOk());

  answer = absl::OkStatus();
  CHECK_THAT(store.Remove(digest), IsOk());
  CHECK(forgotten == std::vector<std::string>{digest.sha256(), digest.sha256()});
  CHECK_FALSE(*store.Contains(digest));
}

TEST_CASE("PromisedArtifactStore never removes what it says is there", "[store]") {
  FolderMaker maker;
  testing::FakeClock clock;
  PromisedArtifactStore store(maker.Open(), absl::Hours(1), clock);
  // Blobs are asked for and removed at once: who hears yes finds the blob.
  std::atomic<int> num_lost = 0;
  std::atomic<int> num_there = 0;
  for (int round = 0; round < 200; ++round) {
    const std::string blob = "blob " + std::to_string(round);
    REQUIRE_THAT(store.Put(blob).status(), IsOk());
    clock.Advance(absl::Hours(2));
    std::jthread remover([&] { store.Remove(DigestOf(blob)).IgnoreError(); });
    const bool is_there = *store.Contains(DigestOf(blob));
    remover.join();
    if (!is_there) continue;
    ++num_there;
    if (!ReadWhole(store, DigestOf(blob), 100).ok()) ++num_lost;
  }
  CHECK(num_lost == 0);
  CHECK(num_there > 0);
}

}  // namespace mtmc::store

// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/digest.h"
#include "common/base/temp_dir.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/store/blob_queue.h"
#include "server/store/data_directory.h"
#include "server/store/file_artifact_store.h"

namespace mtmc::store {
namespace {

using testing::IsOk;
using testing::StatusIs;

v1::Digest DigestOf(const std::string& bytes) {
  v1::Digest digest;
  digest.set_sha256(base::Sha256(bytes).sha256_hex);
  digest.set_size_bytes(static_cast<int64_t>(bytes.size()));
  return digest;
}

std::unique_ptr<FileArtifactStore> OpenIn(const base::TempDir& folder, int64_t max_bytes = 0) {
  auto store = FileArtifactStore::Open(folder.path().string(), {.max_bytes = max_bytes});
  REQUIRE_THAT(store.status(), IsOk());
  return *std::move(store);
}

// Blobs that are not finished, in `folder` of a store.
int UnfinishedIn(const base::TempDir& folder) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path() / "tmp")) {
    if (entry.is_regular_file() && entry.path().filename() != "lock") ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("ArtifactStore returns the bytes that were put", "[store]") {
  const auto folder = *base::TempDir::Create("artifacts");
  const auto store = OpenIn(folder);

  const auto digest = store->Put("hello");

  REQUIRE_THAT(digest.status(), IsOk());
  CHECK(*store->Read(*digest, 0, 100) == "hello");
  CHECK(*store->Read(*digest, 2, 2) == "ll");
  CHECK(*store->Contains(*digest));
}

TEST_CASE("ArtifactStore puts many blobs at once, some of them there or twice", "[store]") {
  const auto folder = *base::TempDir::Create("artifacts");
  const auto store = OpenIn(folder);
  REQUIRE_THAT(store->Put("b").status(), IsOk());

  const auto digests = store->PutAll({"a", "b", "", "a", std::string(100'000, 'x')});

  REQUIRE(digests.size() == 5);
  CHECK(digests[0]->sha256() == DigestOf("a").sha256());
  CHECK(digests[3]->sha256() == DigestOf("a").sha256());
  CHECK(*store->Read(*digests[0], 0, 10) == "a");
  CHECK(*store->Read(*digests[1], 0, 10) == "b");
  CHECK(*store->Contains(*digests[2]));
  CHECK(store->Read(*digests[4], 0, 200'000)->size() == 100'000);
  CHECK(UnfinishedIn(folder) == 0);
}

TEST_CASE("Of many blobs at once those that do not fit fail alone", "[store]") {
  const auto folder = *base::TempDir::Create("artifacts");
  const auto store = OpenIn(folder, /*max_bytes=*/100);

  const auto digests = store->PutAll({std::string(60, 'a'), std::string(60, 'b'), "c"});

  CHECK(digests[0].ok());
  CHECK_THAT(digests[1].status(), StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK(digests[2].ok());
  CHECK(*store->Contains(*digests[2]));
  CHECK_FALSE(*store->Contains(DigestOf(std::string(60, 'b'))));
  CHECK(UnfinishedIn(folder) == 0);
}

TEST_CASE("BlobQueue puts every blob that it was given before its end", "[store]") {
  const auto folder = *base::TempDir::Create("artifacts");
  const auto store = OpenIn(folder);
  absl::Mutex mu;
  std::vector<std::string> put;
  {
    BlobQueue queue(*store);
    for (int i = 0; i < 200; ++i) {
      queue.Put(std::to_string(i), [&mu, &put](absl::StatusOr<v1::Digest> digest) {
        absl::MutexLock lock(&mu);
        if (digest.ok()) put.push_back(digest->sha256());
      });
    }
  }
  REQUIRE(put.size() == 200);
  for (int i = 0; i < 200; ++i) {
    CHECK(put[static_cast<size_t>(i)] == DigestOf(std::to_string(i)).sha256());
    CHECK(*store->Contains(DigestOf(std::to_string(i))));
  }
}

TEST_CASE("ArtifactStore stores nothing when the bytes do not hash to the digest", "[store]") {
  const auto folder = *base::TempDir::Create("artifacts");
  const auto store = OpenIn(folder);
  auto writer = *store->CreateWriter(DigestOf("hello"));

  REQUIRE_THAT(writer->Append("hullo"), IsOk());
  const absl::Status status = writer->Finish();
  writer.reset();

  CHECK(rpc::ErrorReason(status) == "DIGEST_MISMATCH");
  CHECK_FALSE(*store->Contains(DigestOf("hello")));
  CHECK(UnfinishedIn(folder) == 0);
}

TEST_CASE("ArtifactStore refuses more bytes than were promised", "[store]") {
  const auto folder = *base::TempDir::Create("artifacts");
  const auto store = OpenIn(folder);
  const auto writer = *store->CreateWriter(DigestOf("hello"));

  CHECK(rpc::ErrorReason(writer->Append("hello, world")) == "DIGEST_MISMATCH");
}

TEST_CASE("ArtifactStore says DISK_FULL at its limit and recovers", "[store]") {
  const auto folder = *base::TempDir::Create("artifacts");
  const auto store = OpenIn(folder, /*max_bytes=*/10);

  const auto too_much = store->Put("twelve bytes");

  CHECK_THAT(too_much.status(), StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK(rpc::ErrorReason(too_much.status()) == "DISK_FULL");
  CHECK_THAT(store->Put("ten bytes.").status(), IsOk());
}

TEST_CASE("ArtifactStore says which artifact is not stored", "[store]") {
  const auto folder = *base::TempDir::Create("artifacts");
  const auto store = OpenIn(folder);
  v1::Digest malformed;
  malformed.set_sha256("../../etc/passwd");

  CHECK(rpc::ErrorReason(store->Read(DigestOf("absent"), 0, 1).status()) == "ARTIFACT_NOT_FOUND");
  CHECK(rpc::ErrorReason(store->Read(malformed, 0, 1).status()) == "INVALID_DIGEST");
}

TEST_CASE("ArtifactStore removes what a killed process left behind", "[store]") {
  const auto folder = *base::TempDir::Create("artifacts");
  std::filesystem::create_directories(folder.path() / "tmp" / "killed");
  std::ofstream(folder.path() / "tmp" / "killed" / "half") << "half a blob";
  std::ofstream(folder.path() / "tmp" / "earlier version") << "half a blob";

  const auto store = OpenIn(folder);

  CHECK(UnfinishedIn(folder) == 0);
}

TEST_CASE("ArtifactStore leaves alone what another process is writing", "[store]") {
  const auto folder = *base::TempDir::Create("artifacts");
  const auto first = OpenIn(folder);
  const auto writer = *first->CreateWriter(DigestOf("hello"));
  REQUIRE_THAT(writer->Append("hel"), IsOk());

  const auto second = OpenIn(folder);
  REQUIRE_THAT(writer->Append("lo"), IsOk());

  REQUIRE_THAT(writer->Finish(), IsOk());
  CHECK(*second->Contains(DigestOf("hello")));
}

TEST_CASE("DataDirectory is refused to a second coordinator until the first is gone", "[store]") {
  const auto folder = *base::TempDir::Create("data");
  const std::string path = (folder.path() / "data").string();
  auto first = DataDirectory::Open(path);
  REQUIRE_THAT(first.status(), IsOk());

  const absl::Status refused = DataDirectory::Open(path).status();
  first->reset();

  CHECK_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition, "--data-dir"));
  CHECK(rpc::ErrorReason(refused) == "STORE_LOCKED");
  CHECK_THAT(DataDirectory::Open(path).status(), IsOk());
}

}  // namespace mtmc::store

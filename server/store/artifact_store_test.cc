// SPDX-License-Identifier: Apache-2.0
//
// The contract of ArtifactStore, run on every implementation.
#include "server/store/artifact_store.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/store/artifact_makers.h"
#include "server/store/blob_queue.h"

namespace mtmc::store {
namespace {

using testing::IsOk;
using testing::StatusIs;

// No two pieces of it are alike.
std::string LargeBlob(size_t size) {
  std::string bytes;
  for (uint32_t i = 0; bytes.size() < size; ++i) bytes += std::to_string(i * 2654435761u);
  bytes.resize(size);
  return bytes;
}

// Sent as a client does, in chunks.
absl::Status Upload(ArtifactStore& store, const std::string& bytes) {
  auto writer = store.CreateWriter(DigestOf(bytes));
  if (!writer.ok()) return writer.status();
  for (size_t at = 0; at < bytes.size(); at += 1'000'000) {
    const absl::Status status = (*writer)->Append(bytes.substr(at, 1'000'000));
    if (!status.ok()) return status;
  }
  return (*writer)->Finish();
}

std::vector<std::string> Pieces(ArtifactStore& store, const std::string& bytes, int64_t offset) {
  std::vector<std::string> pieces;
  REQUIRE_THAT(store.Read(DigestOf(bytes), offset,
                          [&](std::string piece) {
                            pieces.push_back(std::move(piece));
                            return absl::OkStatus();
                          }),
               IsOk());
  return pieces;
}

std::string Join(const std::vector<std::string>& pieces) {
  std::string bytes;
  for (const std::string& piece : pieces) bytes += piece;
  return bytes;
}

void Overwrite(const std::filesystem::path& file, const std::string& bytes) {
  REQUIRE(std::filesystem::exists(file));
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

std::string ReasonOf(const absl::Status& status) { return rpc::ErrorReason(status); }

}  // namespace

TEMPLATE_TEST_CASE("ArtifactStore returns the bytes that were put", "[store]", FolderMaker,
                   S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();

  const auto digest = store->Put("hello");

  REQUIRE_THAT(digest.status(), IsOk());
  CHECK(digest->sha256() == DigestOf("hello").sha256());
  CHECK(digest->size_bytes() == 5);
  CHECK(*ReadWhole(*store, *digest, 5) == "hello");
  CHECK(Join(Pieces(*store, "hello", 2)) == "llo");
  CHECK(Pieces(*store, "hello", 5).empty());
  CHECK(Pieces(*store, "hello", 50).empty());
  CHECK(*store->Contains(*digest));
  CHECK(*maker.Open()->Contains(*digest));
}

TEMPLATE_TEST_CASE("ArtifactStore puts many blobs at once, some of them there or twice", "[store]",
                   FolderMaker, S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  REQUIRE_THAT(store->Put("b").status(), IsOk());
  const std::vector<std::string> blobs = {"a", "b", "", "a", std::string(100'000, 'x')};

  const auto digests = store->PutAll(blobs);

  REQUIRE(digests.size() == blobs.size());
  for (size_t i = 0; i < blobs.size(); ++i) {
    REQUIRE_THAT(digests[i].status(), IsOk());
    CHECK(digests[i]->sha256() == DigestOf(blobs[i]).sha256());
    CHECK(*ReadWhole(*store, *digests[i], 200'000) == blobs[i]);
  }
  CHECK(maker.CountUnfinished() == 0);
}

TEST_CASE("Of many blobs at once those that do not fit fail alone", "[store]") {
  FolderMaker maker;
  const auto store = maker.Open({.max_bytes = 100});

  const auto digests = store->PutAll({std::string(60, 'a'), std::string(60, 'b'), "c",
                                      std::string(30, 'd'), std::string(30, 'd'), "efghi"});

  CHECK(digests[0].ok());
  CHECK(ReasonOf(digests[1].status()) == "DISK_FULL");
  CHECK(digests[2].ok());
  CHECK(digests[3].ok());
  // What is stored once counts once, when it is there.
  CHECK(ReasonOf(digests[4].status()) == "DISK_FULL");
  CHECK(digests[5].ok());
  CHECK_FALSE(*store->Contains(DigestOf(std::string(60, 'b'))));
  CHECK(maker.CountUnfinished() == 0);
  CHECK(store->Put(std::string(30, 'd')).ok());
  CHECK(store->Put("1234").ok());
  CHECK(ReasonOf(store->Put("5").status()) == "DISK_FULL");
}

TEMPLATE_TEST_CASE("BlobQueue puts every blob that it was given before its end", "[store]",
                   FolderMaker, S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  absl::Mutex mu;
  std::set<std::string> put;
  {
    BlobQueue queue(*store);
    for (int i = 0; i < 300; ++i) {
      queue.Put(std::to_string(i), [&mu, &put](absl::StatusOr<v1::Digest> digest) {
        absl::MutexLock lock(&mu);
        if (digest.ok()) put.insert(digest->sha256());
      });
    }
  }
  CHECK(put.size() == 300);
  for (int i = 0; i < 300; ++i) {
    CHECK(put.contains(DigestOf(std::to_string(i)).sha256()));
    CHECK(*store->Contains(DigestOf(std::to_string(i))));
  }
  CHECK(maker.CountUnfinished() == 0);
}

TEMPLATE_TEST_CASE("ArtifactStore stores nothing as well as it stores something", "[store]",
                   FolderMaker, S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  CHECK_FALSE(*store->Contains(DigestOf("")));

  REQUIRE_THAT(Upload(*store, ""), IsOk());

  CHECK(*store->Contains(DigestOf("")));
  CHECK(Pieces(*store, "", 0).empty());
}

TEMPLATE_TEST_CASE("ArtifactStore passes a large blob on in pieces", "[store]", FolderMaker,
                   S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  const std::string bytes = LargeBlob(19'000'000);

  REQUIRE_THAT(Upload(*store, bytes), IsOk());

  const auto pieces = Pieces(*store, bytes, 0);
  CHECK(Join(pieces) == bytes);
  for (const std::string& piece : pieces) CHECK(piece.size() <= size_t{kMaxPieceBytes});
  // Not by CHECK(a == b), which would print both.
  CHECK((Join(Pieces(*store, bytes, 9'999'999)) == bytes.substr(9'999'999)));
  CHECK(maker.CountUnfinished() == 0);
}

TEMPLATE_TEST_CASE("ArtifactStore reads no more into memory than it is told", "[store]",
                   FolderMaker, S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  REQUIRE_THAT(store->Put("hello").status(), IsOk());

  CHECK(ReasonOf(ReadWhole(*store, DigestOf("hello"), 4).status()) == "ARTIFACT_TOO_LARGE");
}

TEMPLATE_TEST_CASE("ArtifactStore stores nothing when the bytes do not hash to the digest",
                   "[store]", FolderMaker, S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  for (const auto& [promised, sent] : {std::pair<std::string, std::string>{"hello", "hullo"},
                                       {LargeBlob(12'000'000), LargeBlob(11'999'999) + "?"}}) {
    auto writer = *store->CreateWriter(DigestOf(promised));
    REQUIRE_THAT(writer->Append(sent), IsOk());

    CHECK(ReasonOf(writer->Finish()) == "DIGEST_MISMATCH");
    writer.reset();

    CHECK_FALSE(*store->Contains(DigestOf(promised)));
    CHECK_FALSE(*store->Contains(DigestOf(sent)));
    CHECK(maker.CountUnfinished() == 0);
  }
}

TEMPLATE_TEST_CASE("ArtifactStore refuses more or fewer bytes than were promised", "[store]",
                   FolderMaker, S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();

  CHECK(ReasonOf((*store->CreateWriter(DigestOf("hello")))->Append("hello, world")) ==
        "DIGEST_MISMATCH");
  CHECK(ReasonOf((*store->CreateWriter(DigestOf("hello")))->Finish()) == "DIGEST_MISMATCH");
  CHECK_FALSE(*store->Contains(DigestOf("hello")));
}

TEMPLATE_TEST_CASE("ArtifactStore drops a blob that is never finished", "[store]", FolderMaker,
                   S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  const std::string bytes = LargeBlob(12'000'000);

  {
    const auto writer = *store->CreateWriter(DigestOf(bytes));
    REQUIRE_THAT(writer->Append(bytes), IsOk());
  }

  CHECK_FALSE(*store->Contains(DigestOf(bytes)));
  CHECK(maker.CountUnfinished() == 0);
}

TEMPLATE_TEST_CASE("ArtifactStore says which artifact is not stored", "[store]", FolderMaker,
                   S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  v1::Digest malformed;
  malformed.set_sha256("../../etc/passwd");

  const absl::Status absent = ReadWhole(*store, DigestOf("absent"), 10).status();

  CHECK_THAT(absent, StatusIs(absl::StatusCode::kNotFound, DigestOf("absent").sha256()));
  CHECK(ReasonOf(absent) == "ARTIFACT_NOT_FOUND");
  CHECK(ReasonOf(ReadWhole(*store, malformed, 10).status()) == "INVALID_DIGEST");
  CHECK(ReasonOf(store->Contains(malformed).status()) == "INVALID_DIGEST");
  CHECK(ReasonOf(store->CreateWriter(malformed).status()) == "INVALID_DIGEST");
}

TEMPLATE_TEST_CASE("ArtifactStore does not write again what is stored", "[store]", FolderMaker,
                   S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  for (const std::string& bytes : {std::string("hello"), LargeBlob(12'000'000)}) {
    REQUIRE_THAT(Upload(*store, bytes), IsOk());
    const auto file = maker.FileOf(DigestOf(bytes));
    // Kept in place by a second name; a file that is written anew has another one.
    const auto first = maker.Aside();
    std::filesystem::create_hard_link(file, first);
    const auto written = std::filesystem::last_write_time(file);

    CHECK_THAT(store->Put(bytes).status(), IsOk());
    CHECK_THAT(Upload(*store, bytes), IsOk());
    CHECK_THAT(Upload(*maker.Open(), bytes), IsOk());

    CHECK(std::filesystem::equivalent(file, first));
    CHECK(std::filesystem::last_write_time(file) == written);
    CHECK(maker.CountUnfinished() == 0);
    std::filesystem::remove(first);
  }
}

TEMPLATE_TEST_CASE("ArtifactStore checks what comes for a blob that is stored", "[store]",
                   FolderMaker, S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  REQUIRE_THAT(store->Put("hello").status(), IsOk());
  const auto writer = *store->CreateWriter(DigestOf("hello"));
  REQUIRE_THAT(writer->Append("hullo"), IsOk());

  CHECK(ReasonOf(writer->Finish()) == "DIGEST_MISMATCH");

  CHECK(*ReadWhole(*store, DigestOf("hello"), 5) == "hello");
}

TEMPLATE_TEST_CASE("ArtifactStore takes one blob from two uploads at once", "[store]", FolderMaker,
                   S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  const std::string bytes = LargeBlob(12'000'000);
  const auto first = *store->CreateWriter(DigestOf(bytes));
  const auto second = *store->CreateWriter(DigestOf(bytes));

  REQUIRE_THAT(first->Append(bytes), IsOk());
  REQUIRE_THAT(second->Append(bytes), IsOk());
  REQUIRE_THAT(first->Finish(), IsOk());
  REQUIRE_THAT(second->Finish(), IsOk());

  CHECK((*ReadWhole(*store, DigestOf(bytes), 20'000'000) == bytes));
}

TEMPLATE_TEST_CASE("ArtifactStore never takes a damaged blob for whole", "[store]", FolderMaker,
                   S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  const std::string bytes = LargeBlob(3'000'000);
  std::string flipped = bytes;
  flipped[5] ^= 1;
  for (const std::string& damage : {flipped, bytes.substr(0, 2'000'000), std::string()}) {
    REQUIRE_THAT(Upload(*store, bytes), IsOk());
    Overwrite(maker.FileOf(DigestOf(bytes)), damage);

    size_t passed = 0;
    const absl::Status status =
        store->Read(DigestOf(bytes), 1'000'000, [&](const std::string& piece) {
          passed += piece.size();
          return absl::OkStatus();
        });

    CHECK_THAT(status, StatusIs(absl::StatusCode::kDataLoss, "upload it again"));
    CHECK(ReasonOf(status) == "ARTIFACT_CORRUPT");
    CHECK(passed < bytes.size() - 1'000'000);
    CHECK_FALSE(*store->Contains(DigestOf(bytes)));
    // What has the bytes can mend it.
    REQUIRE_THAT(Upload(*store, bytes), IsOk());
    CHECK(*store->Contains(DigestOf(bytes)));
    CHECK((*ReadWhole(*store, DigestOf(bytes), 3'000'000) == bytes));
  }
}

TEMPLATE_TEST_CASE("ArtifactStore takes a blob of another size for absent", "[store]", FolderMaker,
                   S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  REQUIRE_THAT(store->Put("hello").status(), IsOk());
  Overwrite(maker.FileOf(DigestOf("hello")), "hel");

  CHECK_FALSE(*store->Contains(DigestOf("hello")));
  REQUIRE_THAT(store->Put("hello").status(), IsOk());

  CHECK(*ReadWhole(*store, DigestOf("hello"), 5) == "hello");
}

TEMPLATE_TEST_CASE("ArtifactStore ends a reading with the error of its sink", "[store]",
                   FolderMaker, S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  const std::string bytes = LargeBlob(3'000'000);
  REQUIRE_THAT(Upload(*store, bytes), IsOk());
  int calls = 0;

  const absl::Status status = store->Read(DigestOf(bytes), 0, [&](const std::string&) {
    ++calls;
    return absl::CancelledError("the client has gone");
  });

  CHECK_THAT(status, StatusIs(absl::StatusCode::kCancelled));
  CHECK(calls == 1);
  CHECK(*store->Contains(DigestOf(bytes)));
}

TEMPLATE_TEST_CASE("ArtifactStore lists its blobs and nothing else", "[store]", FolderMaker,
                   S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  std::map<std::string, int64_t> put;
  for (int i = 0; i < 20; ++i) {
    const auto digest = *store->Put("blob " + std::to_string(i));
    put[digest.sha256()] = digest.size_bytes();
  }
  const auto strange = maker.FileOf(DigestOf("blob 0")).parent_path() / "strange";
  std::ofstream(strange) << "no blob";
  const absl::Time now = absl::Now();

  std::map<std::string, int64_t> listed;
  REQUIRE_THAT(store->List([&](const StoredBlob& blob) {
    listed[blob.digest.sha256()] = blob.digest.size_bytes();
    CHECK(absl::AbsDuration(now - blob.modified) < absl::Minutes(1));
    return absl::OkStatus();
  }),
               IsOk());

  CHECK(listed == put);
  CHECK_THAT(store->List([](const StoredBlob&) { return absl::CancelledError("enough"); }),
             StatusIs(absl::StatusCode::kCancelled));
}

TEMPLATE_TEST_CASE("ArtifactStore removes a blob, which may be stored again", "[store]",
                   FolderMaker, S3Maker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  REQUIRE_THAT(store->Put("hello").status(), IsOk());
  REQUIRE_THAT(store->Put("other").status(), IsOk());

  CHECK_THAT(store->Remove(DigestOf("hello")), IsOk());
  CHECK_THAT(store->Remove(DigestOf("hello")), IsOk());

  CHECK_FALSE(*store->Contains(DigestOf("hello")));
  CHECK(*store->Contains(DigestOf("other")));
  CHECK(ReasonOf(ReadWhole(*store, DigestOf("hello"), 5).status()) == "ARTIFACT_NOT_FOUND");
  REQUIRE_THAT(store->Put("hello").status(), IsOk());
  CHECK(*ReadWhole(*store, DigestOf("hello"), 5) == "hello");
}

}  // namespace mtmc::store

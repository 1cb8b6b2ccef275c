// SPDX-License-Identifier: Apache-2.0

// The small values of common/base: digests, ids, files and status text.

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>

#include "absl/strings/cord.h"
#include "common/base/annotate.h"
#include "common/base/digest.h"
#include "common/base/enum_word.h"
#include "common/base/file.h"
#include "common/base/id.h"
#include "common/base/temp_dir.h"
#include "common/testing/status_matchers.h"

namespace mtmc::base {
namespace {

using testing::IsOk;
using testing::StatusIs;

TEST_CASE("EnumWord is the enumerator without its prefix", "[base]") {
  CHECK(EnumWord("KIND_WRONG_RESULT", "KIND_") == "wrong_result");
  CHECK(EnumWord("OTHER", "KIND_") == "other");
  CHECK(EnumWord("", "KIND_").empty());
}

TEST_CASE("Sha256 agrees with the published test vector", "[base]") {
  const Digest digest = Sha256("abc");

  CHECK(digest.sha256_hex == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(digest.is_valid());
}

TEST_CASE("Sha256 in pieces equals Sha256 at once", "[base]") {
  const std::string text(1000, 'x');

  CHECK(Sha256Builder().Append(text.substr(0, 63)).Append(text.substr(63)).Finish() ==
        Sha256(text));
}

TEST_CASE("A digest in capitals is not valid", "[base]") {
  CHECK_FALSE(Digest{std::string(64, 'A')}.is_valid());
  CHECK_FALSE(Digest{std::string(63, 'a')}.is_valid());
}

TEST_CASE("Resource ids are distinct valid labels", "[base]") {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(MakeResourceId("job"));

  CHECK(ids.size() == 1000);
  CHECK(IsResourceId(*ids.begin()));
}

TEST_CASE("IsResourceId follows AIP-122", "[base]") {
  CHECK(IsResourceId("a"));
  CHECK(IsResourceId("job-1"));
  CHECK_FALSE(IsResourceId(""));
  CHECK_FALSE(IsResourceId("1job"));
  CHECK_FALSE(IsResourceId("job-"));
  CHECK_FALSE(IsResourceId("Job"));
  CHECK_FALSE(IsResourceId(std::string(64, 'a')));
}

TEST_CASE("A UUID has version 4 in its third group", "[base]") {
  const std::string uuid = MakeUuid4();

  CHECK(uuid.size() == 36);
  CHECK(uuid[14] == '4');
  CHECK(std::string("89ab").find(uuid[19]) != std::string::npos);
}

TEST_CASE("Annotate keeps code and payloads", "[base]") {
  absl::Status status = absl::NotFoundError("no job \"x\"");
  status.SetPayload("type", absl::Cord("payload"));

  const absl::Status annotated = Annotate(status, "while opening the store");

  CHECK(annotated.code() == absl::StatusCode::kNotFound);
  CHECK(annotated.message() == "no job \"x\" (while opening the store)");
  CHECK(annotated.GetPayload("type") == absl::Cord("payload"));
}

TEST_CASE("A file written atomically replaces the old one", "[base]") {
  const auto folder = TempDir::Create();
  REQUIRE_THAT(folder.status(), IsOk());
  const auto path = folder->path() / "deep/file";

  REQUIRE_THAT(WriteFileAtomically(path, "old"), IsOk());
  REQUIRE_THAT(WriteFileAtomically(path, "new"), IsOk());

  CHECK(ReadFile(path).value() == "new");
  CHECK(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}) == 1);
}

TEST_CASE("A full disk is RESOURCE_EXHAUSTED", "[base]") {
  // A write to /dev/full fails with ENOSPC; the text is that of a file's error.
  CHECK_THAT(SystemError(ENOSPC, "write x"), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_CASE("Room for a file is taken only for a moment", "[base]") {
  const auto folder = TempDir::Create();
  REQUIRE_THAT(folder.status(), IsOk());

  CHECK_THAT(CheckRoom(folder->path(), 4096), IsOk());
  // More than any file may be.
  CHECK_FALSE(CheckRoom(folder->path(), uint64_t{1} << 62).ok());
  CHECK(std::filesystem::is_empty(folder->path()));
  CHECK_THAT(CheckRoom(folder->path() / "none", 1), StatusIs(absl::StatusCode::kNotFound));
}

TEST_CASE("ReadFile tells a missing file from a folder", "[base]") {
  CHECK_THAT(ReadFile("/nonexistent").status(),
             StatusIs(absl::StatusCode::kNotFound, "/nonexistent"));
  CHECK_THAT(ReadFile("/").status(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_CASE("ReadFile stops at its limit", "[base]") {
  CHECK_THAT(ReadFile("/dev/zero", 100).status(),
             StatusIs(absl::StatusCode::kResourceExhausted, "larger than 100 bytes"));
}

TEST_CASE("A temporary folder is removed with its content", "[base]") {
  std::filesystem::path path;
  {
    const auto folder = TempDir::Create();
    REQUIRE_THAT(folder.status(), IsOk());
    path = folder->path();
    REQUIRE_THAT(WriteFileAtomically(path / "file", "x"), IsOk());
  }

  CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace mtmc::base

// SPDX-License-Identifier: Apache-2.0
//
// What a folder of artifacts keeps besides the contract.
#include "server/store/file_artifact_store.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "absl/synchronization/mutex.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/store/artifact_makers.h"
#include "server/store/data_directory.h"

namespace mtmc::store {
namespace {

using testing::IsOk;
using testing::StatusIs;

// What was synchronized, by path; written by fsync() below.
struct Synced {
  static absl::Mutex mu;
  static std::set<std::string>* paths;

  Synced() { Set(&seen); }

  ~Synced() { Set(nullptr); }

  static void Set(std::set<std::string>* to) {
    const absl::MutexLock lock(&mu);
    paths = to;
  }

  std::set<std::string> seen;
};

absl::Mutex Synced::mu(absl::kConstInit);
std::set<std::string>* Synced::paths = nullptr;

}  // namespace
}  // namespace mtmc::store

// In place of libc's, for this whole program.
extern "C" int fsync(int fd) {
  using mtmc::store::Synced;
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
  {
    const absl::MutexLock lock(&Synced::mu);
    if (Synced::paths != nullptr) Synced::paths->insert(path.string());
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace mtmc::store {

TEST_CASE("FileArtifactStore makes every folder durable before a blob is in it", "[store]") {
  FolderMaker maker;
  const std::string path = (maker.folder.path() / "new").string();
  Synced opening;
  const auto store = *FileArtifactStore::Open(path, {});

  CHECK(opening.seen.contains(maker.folder.path().string()));
  CHECK(opening.seen.contains(path));
  Synced writing;
  const auto digest = *store->Put("hello");

  const std::string folder = path + "/" + digest.sha256().substr(0, 2);
  CHECK(writing.seen.contains(folder));
  // Otherwise it would have to be synchronized here, too.
  CHECK(std::filesystem::exists(path + "/00"));
  CHECK(std::filesystem::exists(path + "/ff"));
}

TEST_CASE("FileArtifactStore says DISK_FULL at its limit and recovers", "[store]") {
  FolderMaker maker;
  const auto store = maker.Open({.max_bytes = 10});

  const auto too_much = store->Put("twelve bytes");

  CHECK_THAT(too_much.status(), StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK(rpc::ErrorReason(too_much.status()) == "DISK_FULL");
  CHECK_THAT(store->Put("ten bytes.").status(), IsOk());
}

TEST_CASE("FileArtifactStore counts a blob once, however often it is sent", "[store]") {
  FolderMaker maker;
  const auto store = maker.Open({.max_bytes = 25});
  // Both begin before either is there.
  const auto first = *store->CreateWriter(DigestOf("ten bytes."));
  const auto second = *store->CreateWriter(DigestOf("ten bytes."));
  REQUIRE_THAT(first->Append("ten bytes."), IsOk());
  REQUIRE_THAT(second->Append("ten bytes."), IsOk());
  REQUIRE_THAT(first->Finish(), IsOk());
  REQUIRE_THAT(second->Finish(), IsOk());
  for (int i = 0; i < 5; ++i) {
    const auto again = *store->CreateWriter(DigestOf("ten bytes."));
    REQUIRE_THAT(again->Append("ten bytes."), IsOk());
    REQUIRE_THAT(again->Finish(), IsOk());
  }

  // The writers may live on.
  CHECK_THAT(store->Put("fifteen bytes..").status(), IsOk());
  CHECK_THAT(store->Put("?").status(), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_CASE("FileArtifactStore has room again for what was removed", "[store]") {
  FolderMaker maker;
  const auto store = maker.Open({.max_bytes = 10});
  REQUIRE_THAT(store->Put("ten bytes.").status(), IsOk());

  REQUIRE_THAT(store->Remove(DigestOf("ten bytes.")), IsOk());

  CHECK_THAT(store->Put("ten others").status(), IsOk());
}

TEST_CASE("FileArtifactStore counts a damaged blob that is mended once", "[store]") {
  FolderMaker maker;
  const auto store = maker.Open({.max_bytes = 20});
  const auto digest = *store->Put("ten bytes.");
  std::ofstream(maker.FileOf(digest)) << "TEN BYTES.";
  CHECK_THAT(ReadWhole(*store, digest, 10).status(), StatusIs(absl::StatusCode::kDataLoss));

  REQUIRE_THAT(store->Put("ten bytes.").status(), IsOk());

  CHECK_THAT(store->Put("ten others").status(), IsOk());
}

TEST_CASE("FileArtifactStore removes what a killed process left behind", "[store]") {
  FolderMaker maker;
  std::filesystem::create_directories(maker.folder.path() / "tmp" / "killed");
  std::ofstream(maker.folder.path() / "tmp" / "killed" / "half") << "half a blob";
  std::ofstream(maker.folder.path() / "tmp" / "earlier version") << "half a blob";

  const auto store = maker.Open();

  CHECK(maker.CountUnfinished() == 0);
}

TEST_CASE("FileArtifactStore leaves alone what another process is writing", "[store]") {
  FolderMaker maker;
  const auto first = maker.Open();
  const auto writer = *first->CreateWriter(DigestOf("hello"));
  REQUIRE_THAT(writer->Append("hel"), IsOk());

  const auto second = maker.Open();
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

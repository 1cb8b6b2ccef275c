// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/id.h"
#include "common/base/temp_dir.h"
#include "common/metrics/metrics.h"
#include "common/testing/status_matchers.h"
#include "server/s3/s3_server.h"
#include "server/store/file_artifact_store.h"
#include "server/store/s3_artifact_store.h"

namespace mtmc::store {

// Each implementation of ArtifactStore, for the tests of their contract. A maker has an
// empty store; IsThere() says whether this host has what it needs. Open() opens the store,
// again at a second call; FileOf() is where a blob lies, to damage it; Aside() is another
// path on that file system; CountUnfinished() is what uploads have left behind.

struct FolderMaker {
  base::TempDir folder = *base::TempDir::Create("artifacts");

  bool IsThere() const { return true; }

  std::unique_ptr<FileArtifactStore> Open(FileArtifactStore::Options options = {}) {
    auto store = FileArtifactStore::Open(folder.path().string(), options);
    REQUIRE_THAT(store.status(), testing::IsOk());
    return *std::move(store);
  }

  std::filesystem::path FileOf(const v1::Digest& digest) const {
    return folder.path() / digest.sha256().substr(0, 2) / digest.sha256();
  }

  std::filesystem::path Aside() const { return folder.path() / "aside"; }

  int CountUnfinished() const {
    int count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path() / "tmp")) {
      if (entry.is_regular_file() && entry.path().filename() != "lock") ++count;
    }
    return count;
  }
};

// One server for all tests of a process, with a prefix for each.
struct S3Maker {
  static absl::StatusOr<s3::S3Server>& server() {
    static auto* const started = new absl::StatusOr<s3::S3Server>(s3::S3Server::Start());
    return *started;
  }

  std::string prefix = base::MakeUuid4() + "/";
  std::unique_ptr<metrics::Registry> registry = std::make_unique<metrics::Registry>("test");

  bool IsThere() const {
    if (!absl::IsNotFound(server().status())) return true;
    std::cout << "SKIPPED: " << server().status().message() << std::endl;
    return false;
  }

  std::unique_ptr<S3ArtifactStore> Open(s3::Client::Options options = {}) {
    REQUIRE_THAT(server().status(), testing::IsOk());
    options.environment = server()->environment();
    auto client = s3::Client::Create(server()->settings(prefix), options, *registry);
    REQUIRE_THAT(client.status(), testing::IsOk());
    auto store = S3ArtifactStore::Open(*std::move(client), {});
    REQUIRE_THAT(store.status(), testing::IsOk());
    return *std::move(store);
  }

  std::filesystem::path FileOf(const v1::Digest& digest) const {
    return server()->FileOf(prefix + digest.sha256().substr(0, 2) + "/" + digest.sha256());
  }

  std::filesystem::path Aside() const { return server()->folder() / "aside"; }

  int CountUnfinished() const { return server()->CountParts(); }
};

}  // namespace mtmc::store

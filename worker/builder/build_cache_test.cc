// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/build_cache.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/testing/status_matchers.h"
#include "worker/builder/cached_build.h"

namespace mtmc::worker {
namespace {

using testing::IsOk;
using testing::StatusIs;
using Built = pipe::v1::BuilderResponse::Built;

Built Binary(const std::string& bytes) {
  Built built;
  (*built.mutable_variant()->mutable_parameters())["TILE"] = 32;
  built.set_binary(bytes);
  return built;
}

pipe::v1::BuilderRequest::Build BuildOf(const std::string& program) {
  pipe::v1::BuilderRequest::Build build;
  build.set_program(program);
  build.mutable_device()->set_product("GPU");
  return build;
}

v1::Variant Tile(int64_t value) {
  v1::Variant variant;
  (*variant.mutable_parameters())["TILE"] = value;
  return variant;
}

struct Folder {
  base::TempDir temp = *base::TempDir::Create();
  std::string path = (temp.path() / "builds").string();

  size_t num_files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path),
                                             std::filesystem::directory_iterator()));
  }
};

}  // namespace

TEST_CASE("A key depends on text, parameters, device and toolchain", "[builder]") {
  const auto build = BuildOf("a");
  const std::string key = BuildKey(build, Tile(32));

  CHECK(key.size() == 64);
  CHECK(key == BuildKey(build, Tile(32)));
  CHECK(key != BuildKey(build, Tile(64)));
  CHECK(key != BuildKey(BuildOf("b"), Tile(32)));
  auto other = build;
  other.mutable_device()->set_product("another GPU");
  CHECK(key != BuildKey(other, Tile(32)));
  other = build;
  other.mutable_device()->set_toolchain_version("NVRTC 13.1");
  CHECK(key != BuildKey(other, Tile(32)));
}

TEST_CASE("A cache file gives back what was written", "[builder]") {
  const auto built = ParseCacheFile(ToCacheFile(Binary("ELF")));

  REQUIRE_THAT(built.status(), IsOk());
  CHECK(built->binary() == "ELF");
  CHECK(built->variant().parameters().at("TILE") == 32);
}

TEST_CASE("A damaged cache file is not taken for a build", "[builder]") {
  const std::string good = ToCacheFile(Binary("ELF"));
  std::string changed = good;
  changed.back() ^= 1;

  for (const std::string& bytes :
       {std::string(), good.substr(0, 20), good.substr(0, good.size() - 1), changed, good + "x",
        "mtmc build 2" + good.substr(12), ToCacheFile(Built())}) {
    CHECK_THAT(ParseCacheFile(bytes).status(), StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST_CASE("BuildCache keeps builds over a restart, but no failures", "[builder]") {
  const Folder folder;
  Built failed;
  failed.mutable_failure()->set_kind(v1::Failure::KIND_COMPILE);
  {
    BuildCache cache({.folder = folder.path});
    cache.Put("good", Binary("ELF"));
    cache.Put("bad", failed);
    CHECK(cache.Find("bad")->has_failure());
  }

  BuildCache cache({.folder = folder.path});

  REQUIRE(cache.Find("good"));
  CHECK(cache.Find("good")->binary() == "ELF");
  CHECK_FALSE(cache.Find("bad"));
}

TEST_CASE("BuildCache drops a file that was damaged", "[builder]") {
  const Folder folder;
  BuildCache({.folder = folder.path}).Put("key", Binary("ELF"));
  REQUIRE_THAT(base::WriteFileAtomically(folder.path + "/key", "mtmc build 1\nrubbish"), IsOk());

  BuildCache cache({.folder = folder.path});

  CHECK_FALSE(cache.Find("key"));
  CHECK(folder.num_files() == 0);
}

TEST_CASE("BuildCache stays within its bounds", "[builder]") {
  const Folder folder;
  BuildCache cache({.folder = folder.path, .max_memory_bytes = 4000, .max_disk_bytes = 10000});

  for (int i = 0; i < 30; ++i) cache.Put("key" + std::to_string(i), Binary(std::string(1000, 'x')));

  uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path))
    bytes += entry.file_size();
  CHECK(bytes <= 10000);
  CHECK(folder.num_files() >= 6);
  CHECK(cache.Find("key29"));
  CHECK_FALSE(cache.Find("key0"));
}

}  // namespace mtmc::worker

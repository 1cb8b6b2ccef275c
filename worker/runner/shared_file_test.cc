// SPDX-License-Identifier: Apache-2.0
#include "worker/runner/shared_file.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "common/base/temp_dir.h"
#include "common/testing/status_matchers.h"

namespace mtmc::worker {

using testing::IsOk;
using testing::StatusIs;

TEST_CASE("SharedMapping reads back what another mapping wrote", "[runner]") {
  auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  const std::string path = folder->path() / "tensor";
  auto written = SharedMapping::Create(path, 10000);
  REQUIRE_THAT(written.status(), IsOk());
  std::memcpy(written->bytes().data() + 5000, "hello", 5);

  auto read = SharedMapping::Open(path, 5000, 5);

  REQUIRE_THAT(read.status(), IsOk());
  CHECK(std::memcmp(read->bytes().data(), "hello", 5) == 0);
}

TEST_CASE("SharedMapping refuses a range beyond the file", "[runner]") {
  auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  const std::string path = folder->path() / "tensor";
  REQUIRE_THAT(SharedMapping::Create(path, 100).status(), IsOk());

  CHECK_THAT(SharedMapping::Open(path, 64, 64).status(), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_CASE("A new SharedMapping of the same name leaves the old one intact", "[runner]") {
  auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  const std::string path = folder->path() / "tensor";
  auto old = SharedMapping::Create(path, 4096);
  REQUIRE_THAT(old.status(), IsOk());
  old->bytes()[4095] = std::byte{7};

  REQUIRE_THAT(SharedMapping::Create(path, 16).status(), IsOk());

  CHECK(old->bytes()[4095] == std::byte{7});
}

}  // namespace mtmc::worker

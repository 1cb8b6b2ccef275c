// SPDX-License-Identifier: Apache-2.0
#include "server/store/metered_artifact_store.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "common/testing/status_matchers.h"
#include "server/store/artifact_makers.h"

namespace mtmc::store {

using testing::IsOk;
using testing::StatusIs;

TEST_CASE("MeteredArtifactStore counts calls by what came of them", "[store]") {
  FolderMaker maker;
  metrics::Registry registry("test");
  MeteredArtifactStore store(maker.Open(), registry);
  const auto count = [&](const std::string& operation, const std::string& result) {
    return registry
        .MakeCounter("mtmc_artifact_calls_total", "",
                     {{"operation", operation}, {"result", result}})
        .value();
  };
  CHECK(registry.Render().find("operation=\"read\",result=\"corrupt\"} 0") != std::string::npos);

  const auto digest = *store.Put("hello");
  CHECK_THAT(ReadWhole(store, digest, 5).status(), IsOk());
  CHECK_THAT(ReadWhole(store, DigestOf("absent"), 5).status(),
             StatusIs(absl::StatusCode::kNotFound));
  std::ofstream(maker.FileOf(digest)) << "HELLO";
  CHECK_THAT(ReadWhole(store, digest, 5).status(), StatusIs(absl::StatusCode::kDataLoss));
  CHECK_THAT((*store.CreateWriter(digest))->Finish(), StatusIs(absl::StatusCode::kInvalidArgument));

  CHECK(count("upload", "ok") == 1);
  CHECK(count("read", "ok") == 1);
  CHECK(count("read", "not_found") == 1);
  CHECK(count("read", "corrupt") == 1);
  CHECK(count("upload", "invalid") == 1);
}

}  // namespace mtmc::store

// SPDX-License-Identifier: Apache-2.0
#include "common/rest/path_template.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/testing/status_matchers.h"

namespace mtmc::rest {
namespace {

using testing::IsOk;

std::optional<PathTemplate::Bindings> Match(const std::string& pattern, const std::string& path) {
  const auto parsed = PathTemplate::Parse(pattern);
  REQUIRE_THAT(parsed.status(), IsOk());
  return parsed->Match(path);
}

TEST_CASE("A variable spans the segments of its pattern", "[rest]") {
  const auto bindings = Match("/v1/{name=projects/*/jobs/*}", "/v1/projects/p/jobs/j");

  REQUIRE(bindings);
  CHECK(*bindings == PathTemplate::Bindings{{"name", "projects/p/jobs/j"}});
}

TEST_CASE("A variable without a pattern is one segment", "[rest]") {
  CHECK(Match("/v1/artifacts/{digest.sha256}", "/v1/artifacts/ab") ==
        PathTemplate::Bindings{{"digest.sha256", "ab"}});
  CHECK_FALSE(Match("/v1/artifacts/{digest.sha256}", "/v1/artifacts/ab/c"));
}

TEST_CASE("A verb tells two methods of one path apart", "[rest]") {
  CHECK(Match("/v1/{name=workers/*}:drain", "/v1/workers/w:drain") ==
        PathTemplate::Bindings{{"name", "workers/w"}});
  CHECK_FALSE(Match("/v1/{name=workers/*}:drain", "/v1/workers/w"));
  CHECK_FALSE(Match("/v1/{name=workers/*}:drain", "/v1/workers/w:undrain"));
  CHECK_FALSE(Match("/v1/{name=workers/*}", "/v1/workers/w:drain"));
}

TEST_CASE("Other paths do not fit", "[rest]") {
  for (const char* path : {"", "/", "v1/workers", "/v1", "/v1/workers/", "/v1//workers",
                           "/v1/workers/w/x", "/v2/workers", "/v1/workers%"}) {
    CAPTURE(path);
    CHECK_FALSE(Match("/v1/workers", path));
  }
}

TEST_CASE("Escapes are resolved within their segment", "[rest]") {
  CHECK(Match("/v1/{name=workers/*}", "/v1/w%6frkers/a%20b") ==
        PathTemplate::Bindings{{"name", "workers/a b"}});
  CHECK(Match("/v1/{name=workers/*}", "/v1/workers/a%2Fb") ==
        PathTemplate::Bindings{{"name", "workers/a/b"}});
  CHECK_FALSE(Match("/v1/{name=workers/*}", "/v1/workers/a%2"));
  CHECK(*Unescape("a+b%2B", /*is_query=*/true) == "a b+");
  CHECK(*Unescape("a+b", /*is_query=*/false) == "a+b");
}

TEST_CASE("What is no template is refused", "[rest]") {
  for (const char* text : {"", "v1", "/", "/v1/", "/v1/{name", "/v1/{=a}", "/v1/{name=a/}",
                           "/v1/a**", "/v1/{name=a}b", "/v1:", "//v1"}) {
    CAPTURE(text);
    CHECK_FALSE(PathTemplate::Parse(text).ok());
  }
}

}  // namespace
}  // namespace mtmc::rest

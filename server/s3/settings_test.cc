// SPDX-License-Identifier: Apache-2.0
#include "server/s3/settings.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <string>

#include "common/base/temp_dir.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"

namespace mtmc::s3 {
namespace {

using testing::IsOk;
using testing::StatusIs;

Environment With(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

absl::StatusOr<Settings> Parse(const std::string& address) {
  return ParseSettings(address, false, With({}));
}

}  // namespace

TEST_CASE("Settings are read from an address and the usual variables", "[s3]") {
  const auto settings = ParseSettings("s3://team-blobs/mtmc/prod/", false,
                                      With({{"AWS_ENDPOINT_URL_S3", "https://s3.example:9000/"},
                                            {"AWS_ENDPOINT_URL", "https://other.example"},
                                            {"AWS_DEFAULT_REGION", "eu-central-1"}}));

  REQUIRE_THAT(settings.status(), IsOk());
  CHECK(settings->bucket == "team-blobs");
  CHECK(settings->prefix == "mtmc/prod/");
  CHECK(settings->region == "eu-central-1");
  CHECK(settings->BucketUrl() == "https://s3.example:9000/team-blobs");
}

TEST_CASE("Settings without an endpoint are those of AWS", "[s3]") {
  CHECK(Parse("s3://blobs")->BucketUrl() == "https://blobs.s3.us-east-1.amazonaws.com");
  CHECK(Parse("s3://blobs")->prefix.empty());
  // No certificate is for such a host.
  CHECK(Parse("s3://my.blobs")->BucketUrl() == "https://s3.us-east-1.amazonaws.com/my.blobs");
}

TEST_CASE("Settings refuse what is no bucket or prefix", "[s3]") {
  for (const char* address :
       {"s3://", "s3:///x", "s3://b", "s3://bucket//x", "s3://bucket/a//b", "s3://bucket/../x",
        "s3://bucket/a/./b", "s3://bucket/a?b", "s3://bucket/a b", "s3://user@bucket/a",
        "s3://buck%et", "http://bucket/a", "bucket/a", ""}) {
    INFO(address);
    const absl::Status status = Parse(address).status();
    CHECK_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
    CHECK(rpc::ErrorReason(status) == "INVALID_STORE");
  }
}

TEST_CASE("Settings refuse an endpoint that is none, or without TLS", "[s3]") {
  const auto parse = [](const std::string& endpoint, bool is_insecure) {
    return ParseSettings("s3://bucket", is_insecure, With({{"AWS_ENDPOINT_URL_S3", endpoint}}))
        .status();
  };
  for (const char* endpoint : {"s3.example", "ftp://s3.example", "https://key:secret@s3.example",
                               "https://s3.example/path", "https://", "https://s3.example?x=y"}) {
    INFO(endpoint);
    CHECK(rpc::ErrorReason(parse(endpoint, true)) == "INVALID_STORE");
  }
  CHECK_THAT(parse("http://s3.example:9000", false),
             StatusIs(absl::StatusCode::kInvalidArgument, "--insecure"));
  CHECK_THAT(parse("http://10.0.0.7:9000", false), StatusIs(absl::StatusCode::kInvalidArgument));
  CHECK_THAT(parse("http://s3.example:9000", true), IsOk());
  CHECK_THAT(parse("http://127.0.0.1:9000", false), IsOk());
  CHECK_THAT(parse("http://localhost:9000", false), IsOk());
  CHECK_THAT(parse("http://[::1]:9000", false), IsOk());
  CHECK_THAT(parse("https://s3.example", false), IsOk());
}

TEST_CASE("Credentials come from variables, or from a profile of a file", "[s3]") {
  const auto folder = *base::TempDir::Create("credentials");
  const std::string file = (folder.path() / "credentials").string();
  std::ofstream(file) << "[default]\naws_access_key_id = id\naws_secret_access_key = secret/+=\n"
                         "# temporary\n[prod]\naws_access_key_id=id2\naws_secret_access_key=s2\n"
                         "aws_session_token=token2\n";

  const auto variables = ReadCredentials(With({{"AWS_ACCESS_KEY_ID", "v"},
                                               {"AWS_SECRET_ACCESS_KEY", "vs"},
                                               {"AWS_SHARED_CREDENTIALS_FILE", file}}));
  const auto usual = ReadCredentials(With({{"AWS_SHARED_CREDENTIALS_FILE", file}}));
  const auto profile =
      ReadCredentials(With({{"AWS_SHARED_CREDENTIALS_FILE", file}, {"AWS_PROFILE", "prod"}}));

  CHECK(variables->secret_key == "vs");
  CHECK(usual->access_key == "id");
  CHECK(usual->secret_key == "secret/+=");
  CHECK(usual->session_token.empty());
  CHECK(profile->access_key == "id2");
  CHECK(profile->session_token == "token2");
}

TEST_CASE("Credentials that are missing say where they are looked for", "[s3]") {
  const auto folder = *base::TempDir::Create("credentials");
  const std::string file = (folder.path() / "credentials").string();
  const auto read = [&] {
    return ReadCredentials(With({{"AWS_SHARED_CREDENTIALS_FILE", file}})).status();
  };

  CHECK_THAT(read(), StatusIs(absl::StatusCode::kUnavailable, "AWS_ACCESS_KEY_ID"));
  std::ofstream(file) << "[other]\naws_access_key_id = id\n";
  CHECK_THAT(read(), StatusIs(absl::StatusCode::kUnavailable, "profile \"default\""));
  std::ofstream(file) << "[default]\nplanted-secret\n";
  const absl::Status damaged = read();
  CHECK(rpc::ErrorReason(damaged) == "S3_REFUSED");
  CHECK(std::string(damaged.message()).find("planted-secret") == std::string::npos);
}

}  // namespace mtmc::s3

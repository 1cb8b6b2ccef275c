// SPDX-License-Identifier: Apache-2.0
#include "server/s3/answer.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "common/testing/status_matchers.h"

namespace mtmc::s3 {
namespace {

using testing::IsOk;
using testing::StatusIs;

constexpr char kListing[] =
    R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>
<IsTruncated>true</IsTruncated><NextContinuationToken>a/b+c=</NextContinuationToken>
<Contents><Key>p/ab&amp;c</Key><LastModified>2026-11-26T06:58:24.000Z</LastModified>
<ETag>&#34;5d&#34;</ETag><Size>5</Size><Owner><ID>x</ID></Owner></Contents>
<Contents><Key>p/d</Key><LastModified>2026-11-26T06:58:25Z</LastModified><Size>0</Size></Contents>
</ListBucketResult>)";

}  // namespace

TEST_CASE("A listing of a bucket is read", "[s3]") {
  const auto listing = ParseListing(kListing);

  REQUIRE_THAT(listing.status(), IsOk());
  CHECK(listing->continuation == "a/b+c=");
  REQUIRE(listing->objects.size() == 2);
  CHECK(listing->objects[0].key == "p/ab&c");
  CHECK(listing->objects[0].size_bytes == 5);
  CHECK(listing->objects[1].modified - listing->objects[0].modified == absl::Seconds(1));
}

TEST_CASE("An error of S3 is read", "[s3]") {
  const ErrorAnswer error = ParseError(
      "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code><Message>Less.</Message>"
      "<Key/></Error>");

  CHECK(error.code == "SlowDown");
  CHECK(error.message == "Less.");
  CHECK(ParseError("").code.empty());
  CHECK(ParseError("<html><body>Bad Gateway<br></body></html>").code.empty());
  CHECK(ParseError(kListing).code.empty());
}

TEST_CASE("An answer that lacks what it must have is refused", "[s3]") {
  CHECK(*ParseUploadId("<InitiateMultipartUploadResult><UploadId>u</UploadId>"
                       "</InitiateMultipartUploadResult>") == "u");
  CHECK_THAT(ParseUploadId("<InitiateMultipartUploadResult/>").status(),
             StatusIs(absl::StatusCode::kDataLoss));
  for (const char* body :
       {"", "no XML", "<Error/>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><Contents><Key>k</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>k</Key><Size>-x</Size><LastModified>now"
        "</LastModified></Contents></ListBucketResult>"}) {
    INFO(body);
    CHECK_THAT(ParseListing(body).status(), StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST_CASE("No bytes of a server break the reader of its answers", "[s3]") {
  std::mt19937_64 random(20261126);
  const auto draw = [&](size_t below) {
    return std::uniform_int_distribution<size_t>(0, below - 1)(random);
  };
  const std::string valid = kListing;
  for (int i = 0; i < 3000; ++i) {
    std::string body = valid;
    for (size_t change = draw(6) + 1; change > 0; --change) {
      switch (draw(3)) {
        case 0:
          body[draw(body.size())] = static_cast<char>(draw(256));
          break;
        case 1:
          body.erase(draw(body.size()), draw(40));
          break;
        default:
          body.insert(draw(body.size()), valid.substr(draw(valid.size()), draw(60)));
      }
      if (body.empty()) body = "<";
    }
    const auto listing = ParseListing(body);
    // What is taken has what it must have.
    if (listing.ok()) {
      for (const Object& object : listing->objects) CHECK_FALSE(object.key.empty());
    }
    ParseError(body);
    ParseUploadId(body).status().IgnoreError();
  }
}

TEST_CASE("An answer of a million levels is no answer", "[s3]") {
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "<a>";
  CHECK(ParseError(deep).code.empty());
  CHECK(ParseError("<a/>" + deep).code.empty());
  std::string quoted = "<a b='/>'>";
  for (int i = 0; i < 18; ++i) quoted += quoted;
  CHECK(ParseError(quoted).code.empty());
}

}  // namespace mtmc::s3

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace mtmc::s3 {

// Who signs the requests. A value; never written to a log.
struct Credentials {
  std::string access_key;
  std::string secret_key;
  // Of temporary credentials; else empty.
  std::string session_token = {};
};

// Where blobs lie, and how the server is reached. A value.
struct Settings {
  std::string bucket;
  // Empty, or ends in `/`.
  std::string prefix = {};
  // `https://HOST[:PORT]` of a server that is not AWS; empty is AWS.
  std::string endpoint = {};
  std::string region;
  // Authorities of the server's certificate, PEM; empty is the system's.
  std::string ca_file = {};
  // Lets blobs go to other hosts without TLS.
  bool is_insecure = false;

  // `https://HOST/BUCKET` or `https://BUCKET.HOST`, without a `/` at its end.
  std::string BucketUrl() const;
};

// What a variable of the environment has; nothing where it is unset.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// That of this process.
std::optional<std::string> GetEnvironment(const char* name);

// Of `s3://BUCKET[/PREFIX]`, with AWS_ENDPOINT_URL_S3 (or AWS_ENDPOINT_URL), AWS_REGION (or
// AWS_DEFAULT_REGION) and AWS_CA_BUNDLE. INVALID_ARGUMENT with reason INVALID_STORE.
absl::StatusOr<Settings> ParseSettings(const std::string& address, bool is_insecure,
                                       const Environment& environment = GetEnvironment);

// Of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or else of the profile
// AWS_PROFILE in AWS_SHARED_CREDENTIALS_FILE (`~/.aws/credentials`), read anew at each
// call. UNAVAILABLE with reason S3_REFUSED when there are none.
absl::StatusOr<Credentials> ReadCredentials(const Environment& environment = GetEnvironment);

}  // namespace mtmc::s3

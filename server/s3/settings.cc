// SPDX-License-Identifier: Apache-2.0
#include "server/s3/settings.h"

#include <algorithm>
#include <boost/property_tree/ini_parser.hpp>
#include <boost/property_tree/ptree.hpp>
#include <boost/url/ipv4_address.hpp>
#include <boost/url/ipv6_address.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/rpc/error.h"

namespace mtmc::s3 {
namespace {

absl::Status InvalidStore(const std::string& message) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_STORE", message);
}

absl::Status NoCredentials(const std::string& message) {
  return rpc::MakeError(absl::StatusCode::kUnavailable, "S3_REFUSED", message);
}

// The first of them that is set and not empty.
std::string FirstOf(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto value = environment(name);
    if (value && !value->empty()) return *value;
  }
  return "";
}

// A key of these needs no escapes, in an address and in a signature.
bool IsPlain(absl::string_view text, absl::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           others.find(c) != absl::string_view::npos;
  });
}

bool IsBucket(absl::string_view bucket) {
  return bucket.size() >= 3 && bucket.size() <= 63 && IsPlain(bucket, "-._");
}

absl::Status CheckEndpoint(const std::string& endpoint, bool is_insecure) {
  const auto parsed = boost::urls::parse_uri(endpoint);
  const bool is_address =
      !parsed.has_error() && (parsed->scheme() == "https" || parsed->scheme() == "http") &&
      !parsed->host().empty() && !parsed->has_userinfo() && !parsed->has_query() &&
      (parsed->encoded_path().empty() || parsed->encoded_path() == "/");
  if (!is_address) {
    return InvalidStore(
        "the endpoint of S3 is not of the form https://HOST[:PORT]; correct "
        "AWS_ENDPOINT_URL_S3");
  }
  const bool is_own_host = std::string(parsed->host()) == "localhost" ||
                           (parsed->host_type() == boost::urls::host_type::ipv4 &&
                            parsed->host_ipv4_address().is_loopback()) ||
                           (parsed->host_type() == boost::urls::host_type::ipv6 &&
                            parsed->host_ipv6_address().is_loopback());
  if (parsed->scheme() == "https" || is_insecure || is_own_host) return absl::OkStatus();
  return InvalidStore(absl::StrCat("artifacts would go to ", endpoint,
                                   " without TLS; use https://, or allow it with --insecure"));
}

}  // namespace

std::optional<std::string> GetEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string Settings::BucketUrl() const {
  // Without an endpoint of its own, a bucket with dots would not fit the certificate.
  if (!endpoint.empty()) return absl::StrCat(endpoint, "/", bucket);
  const bool has_dots = bucket.find('.') != std::string::npos;
  const std::string host = absl::StrCat("s3.", region, ".amazonaws.com");
  return has_dots ? absl::StrCat("https://", host, "/", bucket)
                  : absl::StrCat("https://", bucket, ".", host);
}

absl::StatusOr<Settings> ParseSettings(const std::string& address, bool is_insecure,
                                       const Environment& environment) {
  absl::string_view rest = address;
  Settings settings;
  settings.is_insecure = is_insecure;
  const bool has_scheme = absl::ConsumePrefix(&rest, "s3://");
  const size_t slash = std::min(rest.find('/'), rest.size());
  settings.bucket = std::string(rest.substr(0, slash));
  rest.remove_prefix(std::min(slash + 1, rest.size()));
  while (absl::ConsumeSuffix(&rest, "/")) {
  }
  if (!has_scheme || !IsBucket(settings.bucket) || !IsPlain(rest, "-._/") ||
      absl::StrContains(absl::StrCat("/", rest, "/"), "/../") ||
      absl::StrContains(absl::StrCat("/", rest, "/"), "/./") || absl::StrContains(rest, "//") ||
      absl::StartsWith(rest, "/") || rest.size() > 512) {
    return InvalidStore(absl::StrCat("\"", address,
                                     "\" is not of the form s3://BUCKET/PREFIX with letters, "
                                     "digits, '-', '_' and '.'"));
  }
  if (!rest.empty()) settings.prefix = absl::StrCat(rest, "/");
  settings.endpoint = FirstOf(environment, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (!settings.endpoint.empty()) {
    const absl::Status status = CheckEndpoint(settings.endpoint, is_insecure);
    if (!status.ok()) return status;
    settings.endpoint = std::string(absl::StripSuffix(settings.endpoint, "/"));
  }
  settings.region = FirstOf(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (settings.region.empty()) settings.region = "us-east-1";
  if (!IsPlain(settings.region, "-")) {
    return InvalidStore(absl::StrCat("AWS_REGION is \"", settings.region, "\", no region"));
  }
  settings.ca_file = FirstOf(environment, {"AWS_CA_BUNDLE"});
  return settings;
}

absl::StatusOr<Credentials> ReadCredentials(const Environment& environment) {
  Credentials credentials{.access_key = FirstOf(environment, {"AWS_ACCESS_KEY_ID"}),
                          .secret_key = FirstOf(environment, {"AWS_SECRET_ACCESS_KEY"}),
                          .session_token = FirstOf(environment, {"AWS_SESSION_TOKEN"})};
  if (!credentials.access_key.empty() && !credentials.secret_key.empty()) return credentials;
  std::string file = FirstOf(environment, {"AWS_SHARED_CREDENTIALS_FILE"});
  if (file.empty()) file = absl::StrCat(FirstOf(environment, {"HOME"}), "/.aws/credentials");
  std::string profile = FirstOf(environment, {"AWS_PROFILE"});
  if (profile.empty()) profile = "default";
  try {
    boost::property_tree::ptree tree;
    boost::property_tree::read_ini(file, tree);
    // A profile's name may have dots.
    const auto section = tree.find(profile);
    if (section != tree.not_found()) {
      const auto& values = section->second;
      credentials = {.access_key = values.get("aws_access_key_id", ""),
                     .secret_key = values.get("aws_secret_access_key", ""),
                     .session_token = values.get("aws_session_token", "")};
    }
  } catch (const boost::property_tree::ptree_error&) {
    // Its text would quote the line, which may have the key.
    return NoCredentials(absl::StrCat(
        "there are no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
        "write them into ",
        file, ", which cannot be read"));
  }
  if (!credentials.access_key.empty() && !credentials.secret_key.empty()) return credentials;
  return NoCredentials(absl::StrCat("profile \"", profile, "\" of ", file,
                                    " has no aws_access_key_id and aws_secret_access_key"));
}

}  // namespace mtmc::s3

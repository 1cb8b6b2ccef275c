// SPDX-License-Identifier: Apache-2.0
#include "server/s3/refusal.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/error.h"
#include "server/s3/answer.h"

namespace mtmc::s3 {
namespace {

// An error of whom others may write long stories.
constexpr size_t kMaxMessage = 300;

absl::Status Unavailable(const std::string& said) {
  return rpc::MakeError(absl::StatusCode::kUnavailable, "S3_UNAVAILABLE",
                        absl::StrCat("S3 is not available: ", said, "; try again"));
}

absl::Status Refused(const std::string& said, const char* what_to_do) {
  return rpc::MakeError(absl::StatusCode::kUnavailable, "S3_REFUSED",
                        absl::StrCat("S3 refuses: ", said, "; ", what_to_do));
}

absl::Status Misconfigured(const std::string& said, const std::string& what_to_do) {
  return rpc::MakeError(absl::StatusCode::kFailedPrecondition, "S3_MISCONFIGURED",
                        absl::StrCat("S3 says ", said, "; ", what_to_do));
}

}  // namespace

absl::Status ToStatus(const Settings& settings, const Request& request, const Response& response,
                      bool& is_worth_another) {
  const int status = response.status;
  const bool is_success = status >= 200 && status < 300;
  // The end of a multipart upload may fail after it was said to go well. Any other body of
  // a success is what was asked for, and a blob may look like an error.
  if (is_success && request.method != "POST") return absl::OkStatus();
  const ErrorAnswer error = ParseError(response.body);
  if (is_success && error.code.empty()) return absl::OkStatus();
  const std::string said =
      absl::StrCat(request.method, " of ", request.key.empty() ? "the bucket" : request.key,
                   " got ", status, error.code.empty() ? "" : " ", error.code,
                   error.message.empty() ? "" : ": ", error.message.substr(0, kMaxMessage));
  if (error.code == "NoSuchBucket") {
    return Misconfigured(said, absl::StrCat("make the bucket ", settings.bucket,
                                            " or name another with --artifacts"));
  }
  const bool is_no_key = error.code.empty() || error.code == "NoSuchKey" ||
                         error.code == "NotFound" || error.code == "NoSuchUpload";
  if ((status == 404 && is_no_key) || status == 412 || status == 416) return absl::OkStatus();
  if (status == 507 || error.code == "QuotaExceeded" || error.code == "StorageFull") {
    return rpc::MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                          absl::StrCat("the bucket is full: ", said, "; free space and try again"));
  }
  if (status >= 500 || status == 429 || status == 409 || status == 408 || status < 300 ||
      error.code == "RequestTimeout" || error.code == "SlowDown") {
    is_worth_another = true;
    return Unavailable(said);
  }
  if (error.code == "RequestTimeTooSkewed") return Refused(said, "set this host's clock");
  if (error.code == "AuthorizationHeaderMalformed" || (status >= 300 && status < 400)) {
    return Misconfigured(said,
                         absl::StrCat("set AWS_REGION to the bucket's, it is ", settings.region,
                                      ", and AWS_ENDPOINT_URL_S3 if the bucket is not of AWS"));
  }
  if (status == 401 || status == 403 || status == 404 || error.code == "ExpiredToken" ||
      error.code == "InvalidToken" || error.code == "InvalidAccessKeyId") {
    return Refused(said,
                   "check the access key and its secret, and that it may list the bucket and "
                   "get, put and delete its objects");
  }
  return Misconfigured(said, "check --artifacts and AWS_ENDPOINT_URL_S3");
}

}  // namespace mtmc::s3

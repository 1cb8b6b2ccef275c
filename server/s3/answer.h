// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace mtmc::s3 {

// What a server says in XML. Of an answer that is none, nothing: whoever asks has the
// status of HTTP beside it. All of these take any bytes.

// `<Error>`; empty where the answer is no error.
struct ErrorAnswer {
  std::string code;
  std::string message;
};

ErrorAnswer ParseError(const std::string& body);

struct Object {
  std::string key;
  int64_t size_bytes = 0;
  absl::Time modified;
};

// `<ListBucketResult>`.
struct Listing {
  std::vector<Object> objects;
  // For the next request; empty at the end.
  std::string continuation;
};

// DATA_LOSS when it is not that.
absl::StatusOr<Listing> ParseListing(const std::string& body);

// The `UploadId` of a multipart upload that was begun; else DATA_LOSS.
absl::StatusOr<std::string> ParseUploadId(const std::string& body);

}  // namespace mtmc::s3

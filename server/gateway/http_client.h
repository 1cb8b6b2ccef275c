// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace mtmc::gateway {

// An absolute http or https address.
struct Url {
  bool is_secure = false;
  std::string host;
  std::string port;
  // Begins with `/`; no query.
  std::string path;
};

// INVALID_ARGUMENT when `text` is no absolute http(s) URL.
absl::StatusOr<Url> ParseUrl(const std::string& text);

struct HttpResponse {
  int status = 0;
  std::string body;
  // Seconds of `Retry-After`; absent when not given or a date.
  std::string retry_after;
};

struct HttpLimits {
  absl::Duration connect_timeout = absl::Seconds(10);
  // From the request to the first byte of the answer. A model that is not
  // streamed sends nothing until it has thought and written everything.
  absl::Duration first_byte_timeout = absl::Seconds(240);
  // 4 MiB holds a million tokens of code; more is not a reply.
  size_t max_body_bytes = size_t{4} << 20;
};

// Posts JSON over HTTP/1.1, with TLS and certificate check for https, on a
// connection of its own. Blocks until `deadline` at most. Thread-safe.
//
// UNAVAILABLE when there is no connection, DEADLINE_EXCEEDED when a limit of
// time is reached, DATA_LOSS when the answer is no HTTP, ends early or is too
// large. An HTTP error status is a response.
absl::StatusOr<HttpResponse> PostJson(const Url& url,
                                      const std::map<std::string, std::string>& headers,
                                      std::string body, const HttpLimits& limits,
                                      absl::Time deadline);

}  // namespace mtmc::gateway

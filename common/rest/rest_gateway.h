// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rest/transcoder.h"

namespace grpc {
class Channel;
}

namespace mtmc::http {
class ResponseWriter;
struct Request;
}  // namespace mtmc::http

namespace mtmc::rest {

// Serves gRPC services as JSON over HTTP. It calls them as any client does, with the
// caller's `Authorization`, so that who may do what is decided in one place. An error is
//
//   {"error": {"code": 404, "status": "NOT_FOUND", "message": "...", "details": [...]}}
//
// A stream is one JSON object a line (application/x-ndjson); if it ends in an error, the
// last line is one. docs/rest.md has the paths. Thread-safe.
class RestGateway {
 public:
  // Errors are those of Transcoder::Make.
  static absl::StatusOr<std::unique_ptr<RestGateway>> Create(
      std::shared_ptr<grpc::Channel> channel, const std::vector<std::string>& services);

  // Blocks until the request is answered: for a stream until that ends, the client goes
  // or the HTTP server ends.
  void Serve(const http::Request& request, http::ResponseWriter& writer) const;

 private:
  RestGateway(std::shared_ptr<grpc::Channel> channel, Transcoder transcoder);

  const std::shared_ptr<grpc::Channel> channel_;
  const Transcoder transcoder_;
};

}  // namespace mtmc::rest

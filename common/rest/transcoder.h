// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rest/path_template.h"

namespace google::protobuf {
class Message;
class MethodDescriptor;
}  // namespace google::protobuf

namespace mtmc::rest {

// An HTTP request as a call of the contract.
struct Call {
  const google::protobuf::MethodDescriptor* method = nullptr;
  std::unique_ptr<google::protobuf::Message> request;
};

// Turns HTTP requests into calls by the google.api.http rules of the linked protos
// (google.api.HttpRule has the mapping), and messages into JSON. Names of fields are
// those of the protos, as in the CLI's --json; lowerCamelCase is read as well. A method
// without a rule is not served. Thread-safe once made.
class Transcoder {
 public:
  // For these services, such as `mtmc.v1.JobService`. INVALID_ARGUMENT if one is not
  // linked or a rule of it is none.
  static absl::StatusOr<Transcoder> Make(const std::vector<std::string>& services);

  // INVALID_ARGUMENT with reason INVALID_JSON, INVALID_QUERY; NOT_FOUND with reason
  // PATH_NOT_FOUND; UNIMPLEMENTED with reason METHOD_NOT_ALLOWED and metadata `allow` if
  // the path is there for other methods.
  absl::StatusOr<Call> Transcode(const std::string& method, std::string_view target,
                                 const std::string& body) const;

  // The message that a method answers, from its wire form. INTERNAL if that is none.
  static absl::StatusOr<std::string> ResponseToJson(
      const google::protobuf::MethodDescriptor& method, const std::string& wire);

 private:
  struct Route {
    std::string http_method;
    PathTemplate path;
    // Field that the body fills; `*` is the whole request, empty is none.
    std::string body;
    const google::protobuf::MethodDescriptor* method = nullptr;
  };

  std::vector<Route> routes_;
};

// One line of JSON. INTERNAL if the message holds what JSON cannot.
absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message);

}  // namespace mtmc::rest

// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/status.h"

#include <google/rpc/status.pb.h>
#include <grpcpp/support/status.h>

#include <string>

#include "absl/strings/cord.h"

namespace mtmc::rpc {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status details;
  status.ForEachPayload([&details](absl::string_view type, const absl::Cord& payload) {
    google::protobuf::Any& any = *details.add_details();
    any.set_type_url(std::string(type));
    any.set_value(std::string(payload));
  });
  // Abseil and gRPC number the canonical codes alike.
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const std::string message(status.message());
  if (details.details().empty()) return {code, message};
  details.set_code(static_cast<int>(code));
  details.set_message(message);
  return {code, message, details.SerializeAsString()};
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  // Details that do not parse come from a foreign server; the rest is still good.
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& any : details.details()) {
      result.SetPayload(any.type_url(), absl::Cord(any.value()));
    }
  }
  return result;
}

}  // namespace mtmc::rpc

// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/error.h"

#include <google/rpc/error_details.pb.h>

#include <optional>

#include "absl/strings/cord.h"
#include "common/base/check.h"
#include "common/base/string_view.h"

namespace mtmc::rpc {
namespace {

using base::ToAbsl;

constexpr std::string_view kErrorInfoUrl = "type.googleapis.com/google.rpc.ErrorInfo";

std::optional<google::rpc::ErrorInfo> FindErrorInfo(const absl::Status& status) {
  const auto payload = status.GetPayload(ToAbsl(kErrorInfoUrl));
  google::rpc::ErrorInfo info;
  if (!payload || !info.ParseFromString(std::string(*payload))) return std::nullopt;
  return info;
}

}  // namespace

absl::Status MakeError(absl::StatusCode code, std::string_view reason, std::string_view message,
                       const std::map<std::string, std::string>& metadata) {
  MTMC_CHECK(code != absl::StatusCode::kOk);
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain(std::string(kErrorDomain));
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  absl::Status status(code, ToAbsl(message));
  status.SetPayload(ToAbsl(kErrorInfoUrl), absl::Cord(info.SerializeAsString()));
  return status;
}

std::string ErrorReason(const absl::Status& status) {
  const auto info = FindErrorInfo(status);
  return info ? info->reason() : "";
}

std::map<std::string, std::string> ErrorMetadata(const absl::Status& status) {
  const auto info = FindErrorInfo(status);
  if (!info) return {};
  return {info->metadata().begin(), info->metadata().end()};
}

}  // namespace mtmc::rpc

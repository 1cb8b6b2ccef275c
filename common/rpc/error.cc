// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/error.h"

#include <google/rpc/error_details.pb.h>

#include <algorithm>
#include <optional>

#include "absl/strings/cord.h"
#include "common/base/check.h"
#include "common/base/string_view.h"

namespace mtmc::rpc {
namespace {

using base::ToAbsl;

constexpr std::string_view kErrorInfoUrl = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr std::string_view kRetryInfoUrl = "type.googleapis.com/google.rpc.RetryInfo";

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

absl::Status WithRetryDelay(absl::Status status, absl::Duration delay) {
  google::rpc::RetryInfo info;
  const absl::Duration whole = absl::Floor(delay, absl::Seconds(1));
  info.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(whole));
  info.mutable_retry_delay()->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(delay - whole)));
  status.SetPayload(ToAbsl(kRetryInfoUrl), absl::Cord(info.SerializeAsString()));
  return status;
}

absl::Duration RetryDelay(const absl::Status& status) {
  const auto payload = status.GetPayload(ToAbsl(kRetryInfoUrl));
  google::rpc::RetryInfo info;
  if (!payload || !info.ParseFromString(std::string(*payload))) return absl::ZeroDuration();
  return std::max(
      absl::Seconds(info.retry_delay().seconds()) + absl::Nanoseconds(info.retry_delay().nanos()),
      absl::ZeroDuration());
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace mtmc::rpc {

// Domain of every google.rpc.ErrorInfo of ours.
inline constexpr std::string_view kErrorDomain = "mtmc.dev";

// An error a client can act on: `reason` is an UPPER_SNAKE_CASE heading of
// docs/errors.md, `metadata` names what is concerned ({"job", name}). Both travel
// as google.rpc.ErrorInfo. REQUIRES: `code` is not OK.
absl::Status MakeError(absl::StatusCode code, std::string_view reason, std::string_view message,
                       const std::map<std::string, std::string>& metadata = {});

// The reason given to MakeError(), here or in the process the status came from;
// empty if the status has none.
std::string ErrorReason(const absl::Status& status);

// `status` with google.rpc.RetryInfo: a client that calls again should not do so
// before `delay` has passed.
absl::Status WithRetryDelay(absl::Status status, absl::Duration delay);

// What WithRetryDelay() was given; zero if the status says nothing, or nonsense.
absl::Duration RetryDelay(const absl::Status& status);

// The metadata given to MakeError().
std::map<std::string, std::string> ErrorMetadata(const absl::Status& status);

}  // namespace mtmc::rpc

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mtmc::worker {

// The response to a request, both as bytes; an error ends the process.
using AnswerFunction = std::function<absl::StatusOr<std::string>(const std::string& request)>;

// Answers requests on kChannelFd, one after the other, until the daemon closes
// it (OK) or an answer fails. Blocks.
absl::Status ServeChannel(const AnswerFunction& answer);

// Exit code of a child that ended with `status`: 0, 69 when something on the
// host is missing (NOT_FOUND, UNAVAILABLE), otherwise 1. Prints an error.
int ToExitCode(const absl::Status& status);

}  // namespace mtmc::worker

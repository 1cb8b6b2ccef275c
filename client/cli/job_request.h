// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "client/cli/api.h"
#include "client/cli/commands.h"

namespace mtmc::client {

// Reads and uploads the problem (and the start program, if one is named) and
// fills the request. INVALID_ARGUMENT or NOT_FOUND, with what to do, when the
// file or an option is bad; nothing is uploaded then.
absl::StatusOr<v1::CreateJobRequest> MakeJobRequest(Api& api, const CommonOptions& common,
                                                    const JobOptions& options);

}  // namespace mtmc::client

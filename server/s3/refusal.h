// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "server/s3/client.h"

namespace mtmc::s3 {

// What an answer means that is not what was asked for, as Client::Send says it; OK for
// those that it returns. `is_worth_another` is set where the same may go well a moment
// later. Private to this folder.
absl::Status ToStatus(const Settings& settings, const Request& request, const Response& response,
                      bool& is_worth_another);

}  // namespace mtmc::s3

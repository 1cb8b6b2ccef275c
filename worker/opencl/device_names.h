// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mtmc::worker {

// Names of all OpenCL devices in the order of their indices. UNAVAILABLE without
// a loader, NOT_FOUND without a device; the message says what to install.
absl::StatusOr<std::vector<std::string>> ListOpenClDeviceNames();

}  // namespace mtmc::worker

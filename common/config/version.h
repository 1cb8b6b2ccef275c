// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace mtmc::config {

// Version of this build, such as "0.1.0". Client, coordinator and worker talk to
// each other when the part before the last dot is equal.
std::string_view Version();

// Whether a peer of version `other` can be talked to.
bool IsCompatibleVersion(std::string_view other);

}  // namespace mtmc::config

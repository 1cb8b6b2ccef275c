// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace mtmc::base {

// The host's own name, cut at 255 characters; empty where it has none. Thread-safe.
std::string HostName();

}  // namespace mtmc::base

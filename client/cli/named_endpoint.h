// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace mtmc::client {

// HOST:PORT of the coordinator that the user names: `flag`, the value of --endpoint, or
// else MTMC_ENDPOINT; empty if neither does.
std::string NamedEndpoint(const std::string& flag);

}  // namespace mtmc::client

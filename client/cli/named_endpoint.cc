// SPDX-License-Identifier: Apache-2.0
#include "client/cli/named_endpoint.h"

#include <cstdlib>

namespace mtmc::client {

std::string NamedEndpoint(const std::string& flag) {
  if (!flag.empty()) return flag;
  const char* variable = std::getenv("MTMC_ENDPOINT");
  return variable == nullptr ? "" : variable;
}

}  // namespace mtmc::client

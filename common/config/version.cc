// SPDX-License-Identifier: Apache-2.0
#include "common/config/version.h"

namespace mtmc::config {
namespace {

std::string_view Series(std::string_view version) { return version.substr(0, version.rfind('.')); }

}  // namespace

std::string_view Version() { return MTMC_VERSION; }

bool IsCompatibleVersion(std::string_view other) {
  return !other.empty() && Series(other) == Series(Version());
}

}  // namespace mtmc::config

// SPDX-License-Identifier: Apache-2.0
#include "common/base/host_name.h"

#include <unistd.h>

#include <array>

namespace mtmc::base {

std::string HostName() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace mtmc::base

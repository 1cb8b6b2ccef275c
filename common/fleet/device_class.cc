// SPDX-License-Identifier: Apache-2.0
#include "common/fleet/device_class.h"

#include "absl/strings/str_cat.h"

namespace mtmc::fleet {

std::string DeviceClass(const v1::DeviceFacts& device) {
  std::string text;
  // Each part with its length, so that no two devices read the same.
  for (const std::string* part :
       {&device.product(), &device.driver_version(), &device.toolchain_version()}) {
    absl::StrAppend(&text, part->size(), ":", *part, "\n");
  }
  return text;
}

}  // namespace mtmc::fleet

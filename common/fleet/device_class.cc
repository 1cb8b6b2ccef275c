// SPDX-License-Identifier: Apache-2.0
#include "common/fleet/device_class.h"

#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace mtmc::fleet {
namespace {

std::array<std::string_view, 3> ClassParts(const v1::DeviceFacts& device) {
  return {device.product(), device.driver_version(), device.toolchain_version()};
}

}  // namespace

std::string DeviceClass(const v1::DeviceFacts& device) {
  std::string text;
  // Each part with its length, so that no two devices read the same.
  for (const std::string_view part : ClassParts(device)) {
    absl::StrAppend(&text, part.size(), ":", std::string(part), "\n");
  }
  return text;
}

std::string DescribeDeviceClass(const v1::DeviceFacts& device) {
  std::string text;
  for (const std::string_view part : ClassParts(device)) {
    absl::StrAppend(&text, text.empty() || part.empty() ? "" : ", ", std::string(part));
  }
  return text;
}

bool IsSameClass(const v1::DeviceFacts& a, const v1::DeviceFacts& b) {
  return ClassParts(a) == ClassParts(b);
}

}  // namespace mtmc::fleet

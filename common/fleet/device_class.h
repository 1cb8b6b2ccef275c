// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mtmc/v1/device.pb.h"

namespace mtmc::fleet {

// The part of a device that results depend on: product, driver and toolchain, as one
// text. Devices with equal texts are of one class: their workers may finish each
// other's jobs and answer for each other's evaluations.
std::string DeviceClass(const v1::DeviceFacts& device);

// The same for people, such as `H200, 580.65.06, 13.0`.
std::string DescribeDeviceClass(const v1::DeviceFacts& device);

// Whether the two are of one class. For who asks often: makes no text.
bool IsSameClass(const v1::DeviceFacts& a, const v1::DeviceFacts& b);

}  // namespace mtmc::fleet

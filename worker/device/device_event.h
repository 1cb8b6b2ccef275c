// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace mtmc::worker {

// Something that a device or its driver reported about itself.
struct DeviceEvent {
  // One line for people.
  std::string text;
  // The device cannot be trusted, rather than that a program did wrong.
  bool is_fault = false;
};

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/opencl/device_names.h"

#include <array>

#include "common/base/status_macros.h"
#include "worker/opencl/opencl_api.h"

namespace mtmc::worker {

absl::StatusOr<std::vector<std::string>> ListOpenClDeviceNames() {
  MTMC_ASSIGN_OR_RETURN(const OpenClApi* api, OpenOpenCl());
  std::vector<std::string> names;
  while (true) {
    const auto device = FindOpenClDevice(*api, static_cast<int>(names.size()));
    if (!device.ok()) {
      if (names.empty()) return device.status();
      return names;
    }
    std::array<char, 256> name = {};
    api->clGetDeviceInfo(*device, CL_DEVICE_NAME, name.size() - 1, name.data(), nullptr);
    names.emplace_back(name.data());
  }
}

}  // namespace mtmc::worker

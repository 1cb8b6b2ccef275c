// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/device_choice.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mtmc::worker {

std::string DeviceChoice::text() const {
  return absl::StrCat(is_cuda() ? "cuda-" : "opencl-", index);
}

std::string DeviceChoice::torch_name() const {
  return is_cuda() ? absl::StrCat("cuda:", index) : "cpu";
}

absl::StatusOr<DeviceChoice> ParseDeviceChoice(const std::string& text, bool has_nvidia_device) {
  if (text == "auto") {
    return DeviceChoice{.backend = has_nvidia_device ? v1::DIALECT_CUDA : v1::DIALECT_OPENCL};
  }
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  DeviceChoice choice;
  const bool has_index = parts.size() == 2 && absl::SimpleAtoi(parts[1], &choice.index);
  if (has_index && choice.index >= 0 && parts[0] == "opencl") return choice;
  if (has_index && choice.index >= 0 && parts[0] == "cuda") {
    choice.backend = v1::DIALECT_CUDA;
    return choice;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--device is '", text, "', must be auto, opencl:N or cuda:N"));
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace mtmc::base {

// What the control groups around this process allow: its own one, that of its container,
// service or batch job, and all above. A value.
struct CgroupLimits {
  std::optional<int64_t> memory_bytes;
  // May be a fraction.
  std::optional<double> cores;
};

// The least of all of them, by the files of either version of control groups below
// `root`. What cannot be read is no limit.
CgroupLimits ReadCgroupLimits(const std::filesystem::path& root = "/");

}  // namespace mtmc::base

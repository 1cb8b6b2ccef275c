// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "worker/sandbox/mechanism.h"
#include "worker/sandbox/rights.h"

namespace mtmc::worker {

// Everything that mtmc-sandbox is told, as its argument `--spec JSON`. A value.
struct LaunchSpec {
  Rights rights;
  MechanismSet mechanisms;
  // Absolute; entered after the root is changed.
  std::string working_folder;
};

std::string ToJson(const LaunchSpec& spec);

// The inverse of ToJson and no more: every field must be there, none may be
// unknown, paths are absolute, clean (no `.`, `..`, empty part) and few.
// INVALID_ARGUMENT names the field.
absl::StatusOr<LaunchSpec> ParseLaunchSpec(std::string_view json);

}  // namespace mtmc::worker

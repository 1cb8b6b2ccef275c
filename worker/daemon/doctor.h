// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/python_environment.h"
#include "worker/daemon/host_check.h"

namespace mtmc::worker {

// Looks at Python, devices, compilers, counters, isolation, and the traps of the
// platform. Blocks up to some seconds; starts short-lived processes; changes nothing.
std::vector<HostCheck> ExamineHost(const absl::StatusOr<config::PythonEnvironment>& python,
                                   const std::string& aten_plugin);

// JSON: `{"checks": [{"name", "state", "detail", "remedy"}]}`.
std::string ToJson(const std::vector<HostCheck>& checks);

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/python_environment.h"

namespace mtmc::worker {

// One thing that a worker needs or can use, and whether this host has it.
struct HostCheck {
  enum class State {
    kPresent,
    kDegraded,  // works, with less: `detail` says what is lost
    kMissing,   // needed, or needed for one of the backends
  };
  // Short and stable, such as `opencl` or `namespaces.user`.
  std::string name;
  State state = State::kMissing;
  // What was found.
  std::string detail;
  // What to do; empty when present.
  std::string remedy;
};

// Looks at Python, devices, compilers, counters, memory and isolation. Blocks up
// to some seconds; starts short-lived processes; changes nothing.
std::vector<HostCheck> ExamineHost(const absl::StatusOr<config::PythonEnvironment>& python,
                                   const std::string& aten_plugin);

// JSON: `{"checks": [{"name", "state", "detail", "remedy"}]}`.
std::string ToJson(const std::vector<HostCheck>& checks);

}  // namespace mtmc::worker

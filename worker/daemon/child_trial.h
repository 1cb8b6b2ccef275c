// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/config/python_environment.h"
#include "worker/daemon/doctor.h"
#include "worker/sandbox/isolation.h"

namespace mtmc::worker {

// Starts each child of a worker once under `isolation`, far enough to load its
// libraries: builder and runner tell their version, the interpreter imports
// PyTorch. One check per party; what fails says what the child printed. Blocks
// for seconds.
std::vector<HostCheck> TryChildren(const config::PythonEnvironment& python,
                                   const Isolation& isolation);

}  // namespace mtmc::worker

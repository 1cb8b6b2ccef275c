// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace mtmc::worker {

// The processes that `process` has started and that are not reaped.
std::vector<pid_t> ChildrenOf(pid_t process);

// Bytes of host memory that `root` and its descendants hold, pages that they
// share counted once per process; 0 when `root` is gone. From /proc, about 20 us
// per process.
int64_t ResidentBytesOfTree(pid_t root);

// Memory that this host lets its processes have: the machine's, or the least limit of
// the control groups around them (a container, service or batch job) if that is smaller.
int64_t HostMemoryBytes();

}  // namespace mtmc::worker

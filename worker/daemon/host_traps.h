// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "worker/daemon/host_check.h"
#include "worker/daemon/host_facts.h"

namespace mtmc::worker {

// What platforms do to a worker without a word: mounts from which nothing may be executed,
// GPUs that are hidden or shared, limits of a container or batch job, libraries that are
// loaded late. Names: `shm.exec`, `tmp.exec`, `memory`, `cores`, `open-files`; with a GPU
// `gpu.visible` and `gpu.whole`; `libpq` and `libcurl` where MTMC_STORE and MTMC_ARTIFACTS
// want them. Looks at nothing but `facts`.
std::vector<HostCheck> FindTraps(const HostFacts& facts);

}  // namespace mtmc::worker

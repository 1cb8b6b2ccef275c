// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace mtmc::worker {

// Where CUDA sources find headers, folders joined with ':' and the first that has a file
// wins: the C and C++ standard headers that NVRTC lacks (`include`), then libcu++ and
// CUB, both of this installation; then `toolkit`, folders of the host's Python packages,
// which have the toolkit's own (cuda_fp16.h, cooperative_groups.h, mma.h).
std::string CudaIncludePath(const std::string& toolkit);

}  // namespace mtmc::worker

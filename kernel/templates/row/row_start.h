// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/templates/row/row_mapping.h"

namespace mtmc::kernel {

// The mapping with which reductions are worth timing first on a GPU, where elements may be
// accessed in groups of up to `lanes`. By the shape alone: enough threads for the device, each
// with enough elements to hide what a block costs. How far such kernels are from the best of
// all knobs on drawn shapes: docs/benchmarks/start-knobs.md, after which its constants were
// chosen. May not be legal for the group.
RowMapping StartingMapping(const GroupView& view, const EmitTarget& target, int64_t lanes);

}  // namespace mtmc::kernel

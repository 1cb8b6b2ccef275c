// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/templates/kernel_template.h"

namespace mtmc::kernel {

// Running sums and products along one axis, with maps before and after. Knobs:
// `by_row` 1 for a thread per row, 0 for a block per row that scans tile by tile;
// `block` threads; `vector` consecutive elements per thread of a tile.
extern const KernelTemplate kScanTemplate;

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/templates/kernel_template.h"

namespace mtmc::kernel {

// One sum of products, with the maps that make its factors and the maps of its
// result: matrix products and convolutions alike. Knobs: `tiled` 0 for one thread per element,
// else blocks of `bm` x `bn` elements in steps of `bk`, `tm` x `tn` per thread.
extern const KernelTemplate kContractionTemplate;

}  // namespace mtmc::kernel

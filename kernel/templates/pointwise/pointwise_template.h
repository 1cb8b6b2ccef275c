// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/templates/kernel_template.h"

namespace mtmc::kernel {

// Maps over one space of elements, data movement included: one thread per
// element or per few consecutive ones. Knobs: `block` threads, `vector` elements per access,
// `items` accesses per thread, `tile` 1 to turn a transposition in shared memory.
extern const KernelTemplate kPointwiseTemplate;

}  // namespace mtmc::kernel

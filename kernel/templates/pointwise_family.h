// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/templates/family.h"

namespace mtmc::kernel {

// Maps over one space of elements, data movement included: one thread per
// element or per few consecutive ones. Knobs: `block` threads, `vector` elements per access,
// `items` accesses per thread, `tile` 1 to turn a transposition in shared memory.
const Family& PointwiseFamily();

}  // namespace mtmc::kernel

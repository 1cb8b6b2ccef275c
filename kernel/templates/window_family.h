// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/templates/family.h"

namespace mtmc::kernel {

// Pooling: each output element reduces a small window that one thread reads.
// Knobs as in `row_mapping.h`, always by row.
const Family& WindowFamily();

}  // namespace mtmc::kernel

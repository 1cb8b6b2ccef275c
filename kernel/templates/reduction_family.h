// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/templates/family.h"

namespace mtmc::kernel {

// Reductions whose every output has one element per row of what is reduced, with
// maps before and after, multiple reductions over the same axes in one sweep.
// Knobs as in `row_mapping.h`.
const Family& ReductionFamily();

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/templates/family.h"

namespace mtmc::kernel {

// Reductions, and maps over the whole space that use their results: softmax,
// norms, cross entropy. The row is swept to reduce, once per level of dependency,
// and once more to write. Knobs as in `row_mapping.h`.
const Family& NormalizationFamily();

}  // namespace mtmc::kernel

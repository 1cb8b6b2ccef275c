// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/templates/kernel_template.h"

namespace mtmc::kernel {

// Reductions and maps over row spaces (`sweep_plan.h`): sums, softmax, norms,
// pooling. Printed stage by stage by `row_kernel.h` and `map_kernel.h`; its knobs
// are those of `row_knobs.h`.
extern const KernelTemplate kRowTemplate;

}  // namespace mtmc::kernel

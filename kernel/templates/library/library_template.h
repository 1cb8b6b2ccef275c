// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/templates/kernel_template.h"

namespace mtmc::kernel {

// One graph node as the call that the user wrote. No knobs.
extern const KernelTemplate kLibraryTemplate;

}  // namespace mtmc::kernel

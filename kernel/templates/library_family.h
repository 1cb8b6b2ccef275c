// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/templates/family.h"

namespace mtmc::kernel {

// One graph node as the call that the user wrote. No knobs.
const Family& LibraryFamily();

}  // namespace mtmc::kernel

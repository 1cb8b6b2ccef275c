// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/loops/loop.h"

namespace mtmc::kernel {

// Whether a reduction runs over a window: an index mixes where the result is with
// where in the window it reads.
bool IsWindow(const Loop& loop);

}  // namespace mtmc::kernel

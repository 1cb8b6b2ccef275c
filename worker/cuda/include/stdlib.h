// SPDX-License-Identifier: Apache-2.0
#pragma once

// <stdlib.h> for device code that NVRTC compiles: a kernel allocates nothing.

#include <stddef.h>

// SPDX-License-Identifier: Apache-2.0
#pragma once

// <string.h> for device code that NVRTC compiles: memcpy and memset are built in.

#include <stddef.h>

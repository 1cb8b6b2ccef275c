// SPDX-License-Identifier: Apache-2.0
#pragma once

// <stdio.h> for device code that NVRTC compiles: a kernel prints nothing.

#include <stddef.h>

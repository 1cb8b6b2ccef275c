// SPDX-License-Identifier: Apache-2.0
#pragma once

// What nvcc makes known to a source without #include. Given to a source only when it
// does not compile without.

#include <float.h>
#include <limits.h>

#include <cmath>
#include <cstdint>
#include <limits>

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

// SPDX-License-Identifier: Apache-2.0
#pragma once

// <stddef.h> for device code that NVRTC compiles; size_t and ptrdiff_t are built in.

#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif

typedef decltype(nullptr) nullptr_t;
typedef double max_align_t;

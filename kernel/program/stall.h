// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernel/program/program.h"

namespace mtmc::kernel {

// The program's text with a delay at the start of its kernels: some blocks, other ones for
// each seed, begin up to a few milliseconds after the rest, which is longer than a program can
// afford to sleep. Nothing else changes, so what depends on the order or the speed of blocks
// comes out another way. With many blocks few are delayed, so that the whole costs some 20 ms.
// Empty where there is nothing to delay or the text is ambiguous. REQUIRES: `program` was
// parsed from its text, and `dialect` is not kTriton.
std::string WithStalledBlocks(const Program& program, uint32_t seed);

}  // namespace mtmc::kernel

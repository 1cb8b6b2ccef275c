// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernel/program/program.h"

namespace mtmc::kernel {

// Where blocks wait: as they begin, or in the middle, where others see half of what they do
// (race_sites.h).
enum class StallPlaces { kBeginnings, kMiddles };

// The program's text with delays in its kernels: some blocks, other ones for each seed, wait up to
// a few milliseconds, which is longer than a program can afford to sleep. Many wait as they begin,
// about 64 of many blocks; few in the middle, each once, so that all others come to their end
// meanwhile; there a store that nothing orders before the next one comes after it, too. What
// depends on the order or the speed of blocks comes out another way, and nothing else does. A
// launch takes some 20 ms. Empty where there is nothing to delay or the text is ambiguous.
// REQUIRES: `program` was parsed from its text, and `dialect` is not kTriton.
std::string WithStalledBlocks(const Program& program, uint32_t seed,
                              StallPlaces places = StallPlaces::kBeginnings);

}  // namespace mtmc::kernel

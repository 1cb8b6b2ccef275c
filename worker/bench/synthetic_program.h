// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "mtmc/v1/device.pb.h"

namespace mtmc::worker {

// Elements of the input `x` and the output `y` of a synthetic program.
inline constexpr int64_t kSyntheticElements = int64_t{1} << 16;

// Its one kernel, and the threads of a block.
inline constexpr char kSyntheticKernel[] = "work";
inline constexpr int kSyntheticThreads = 256;

// Name of the `tune` parameter that sets its length.
inline constexpr char kLoopsParameter[] = "LOOPS";

// A program that reads x, works for a time that is linear in LOOPS, and writes y:
// chained multiply-adds, which take the same number of cycles each.
std::string SyntheticProgram(v1::Dialect dialect);

}  // namespace mtmc::worker

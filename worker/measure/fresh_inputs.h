// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace mtmc::worker {

// Whether every one of `fresh`, times of executions on inputs that the program had
// never seen, exceeds the median of the `usual` ones by more than a quarter, and by
// more than three times their interquartile range or 0.8 of the median. An honest program does the same work on both, so that a few of them tell it from
// one that replays. REQUIRES: both not empty and positive.
bool AreSlower(std::span<const double> fresh, std::span<const double> usual);

}  // namespace mtmc::worker

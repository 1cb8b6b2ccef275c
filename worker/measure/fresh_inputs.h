// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace mtmc::worker {

// Whether every one of `fresh`, times of executions on inputs that the program had
// never seen, is longer than `usual` ones are: beyond their 95th percentile by more
// than a quarter of their median. An honest program does the same work on both. REQUIRES: both not
// empty and positive.
bool AreSlower(std::span<const double> fresh, std::span<const double> usual);

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace mtmc::worker {

// One execution on inputs that the program had never seen. Times in seconds.
struct FreshExecution {
  double seconds = 0;
  // Median of the executions just before it on inputs that the program knew.
  double neighbour_seconds = 0;
  // Each of those.
  std::vector<double> neighbours = {};
};

enum class FreshTime {
  // An honest program does the same work on both.
  kAsUsual,
  // Longer, though what disturbs the host may be the reason.
  kLonger,
  // Every single one took longer than its neighbours and than usual: what the
  // program knows it does not compute again.
  kReplayed,
};

// Fresh executions that a program must have had before it is called a replay. Where
// one honest sample in five strays by a quarter, all of eight do in 1 of 400,000.
inline constexpr int kFreshForReplay = 8;

// How the times on fresh inputs compare with `usual`, those of all other executions.
// One fresh execution is enough for kAsUsual. REQUIRES: both not empty, all positive.
FreshTime JudgeFresh(std::span<const FreshExecution> fresh, std::span<const double> usual);

// What a sample must be below to be far faster than `usual`. REQUIRES: not empty.
double FastLimit(std::span<const double> usual);

// Whether a good part of `usual` is far faster than their median: an honest host does so now
// and then, a program that replays some of its executions always.
bool HasFastMode(std::span<const double> usual);

// Most fresh executions that are made to tell whether a fast mode is the program's own.
inline constexpr int kMostFreshForModes = 64;

// Whether the fast mode of `usual` exists on inputs that the program knew alone: none of the
// fresh executions has it, while so many of their neighbours have that this would be chance
// for one honest program in a million. Each is held against its own neighbours, because a host
// is fast for a while and then is not. REQUIRES: HasFastMode(usual).
bool IsFastOnKnownInputsOnly(std::span<const FreshExecution> fresh, std::span<const double> usual);

// Median of the fresh times over that of the usual ones. REQUIRES: as JudgeFresh.
double FreshSlowdown(std::span<const FreshExecution> fresh, std::span<const double> usual);

}  // namespace mtmc::worker

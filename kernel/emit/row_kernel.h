// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/emit/family.h"
#include "kernel/emit/sweep_plan.h"

namespace mtmc::kernel {

// How the threads of a block share a stage's rows and columns. Read from the
// group's knobs of the same names; one pattern for GPUs and CPUs:
//
//   by_row = 0   a block per row: threads stride over its columns, then combine.
//                `vector` neighbouring columns at a time.
//   by_row = 1   a thread per `vector` neighbouring rows, for rows that lie side by
//                side in memory; `depth` threads share the columns and combine.
//
// On a CPU `block` is 1 and `vector` long: the lanes are what its compiler
// vectorizes.
struct RowMapping {
  int64_t by_row = 0;
  int64_t block = 1;
  int64_t vector = 1;
  int64_t depth = 1;
  // Pieces that each row's columns are cut into, one block each.
  int64_t split = 1;
  // Whether each thread keeps what it read for the next sweep (CUDA only).
  int64_t cache = 0;
};

// The group's mapping fitted to a stage: lanes divide what they run along, and so on. A stage of
// another shape than the knobs were chosen for still gets a legal one.
RowMapping FitMapping(const GroupView& view, const EmitTarget& target,
                      const SweepPlan::Stage& stage, const std::vector<std::string>& tuned);

// Prints the kernels of a stage. `index` makes names unique in the group.
absl::StatusOr<Emission> EmitStage(const GroupView& view, const EmitTarget& target,
                                   const std::vector<std::string>& tuned,
                                   const SweepPlan::Stage& stage, size_t index);

}  // namespace mtmc::kernel

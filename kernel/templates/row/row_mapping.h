// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/view/emit_target.h"
#include "kernel/view/group_view.h"
#include "kernel/view/sweep_plan.h"
#include "kernel/writer/emission.h"

namespace mtmc::kernel {

// Elements a thread may keep in registers: half of the 255 that a CUDA thread
// has, so that addresses and states fit beside them.
inline constexpr int64_t kMostCachedElements = 128;

// The same of a thread of a block of so many, which share the 65,536 registers of a
// multiprocessor: five eighths of its part, above which compilers spill.
int64_t MostCachedElements(int64_t block);

// The stage whose shape decides on a mapping: the one with the most elements.
const SweepPlan::Stage& MainStage(const SweepPlan& plan);

// The largest power of two up to `value`, and from `least` to `most`, which are such powers.
int64_t PowerOfTwoUpTo(int64_t value, int64_t least, int64_t most);

// Whether elements of a row belong to its neighbours as well: a thread computes whole rows.
bool HasWindow(const GroupView& view);

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

// The threads of a kernel's block as its text names them.
struct RowThreads {
  RowMapping map;
  // Neighbouring elements that a thread takes at a time.
  int64_t lanes = 1;
  // How many there are: a literal, or a macro when `block` is tuned.
  std::string count;
  bool is_block_tuned = false;
  bool is_gpu = true;

  bool by_row() const { return map.by_row != 0; }

  bool has_lanes() const { return lanes > 1; }

  bool is_alone() const { return map.block == 1 && !is_block_tuned; }

  // The index of a thread: the variable `thread`, or 0 if it is alone.
  std::string index() const { return is_alone() ? "0" : "thread"; }
};

}  // namespace mtmc::kernel

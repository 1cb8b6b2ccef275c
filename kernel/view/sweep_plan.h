// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/view/group_view.h"
#include "kernel/view/row_space.h"

namespace mtmc::kernel {

// How a group of reductions and maps is computed in as few sweeps as its
// dependencies allow.
//
// A *stage* is one pass over one row space by one kernel (or, when split, two):
// its reductions in levels, each level one sweep that reads the results of the
// levels before, then the group outputs that it can store. Results that a later
// stage needs go through memory. A stage without reductions stores what fits no
// row space, element by element.
struct SweepPlan {
  // An output with one element per row and column, with its indices over axes 0
  // (row) and 1 (column).
  struct FullOutput {
    std::string value;
    std::vector<ScalarPtr> indices;
  };

  struct Stage {
    RowSpace space;
    std::vector<std::vector<const Loop*>> levels;
    // Values with one element per row, in row order.
    std::vector<std::string> row_outputs;
    std::vector<FullOutput> full_outputs;
    // For a stage without reductions.
    std::vector<std::string> map_outputs;
  };

  std::vector<Stage> stages;
  // Reduction results that later stages read, in memory of their own unless they
  // are outputs of the group.
  std::vector<std::string> kept;
};

// Absent when the group holds anything but maps and reductions, or no reduction
// that an output needs.
std::optional<SweepPlan> MakeSweepPlan(const GroupView& view);

// MakeSweepPlan, once for a view that MakeGroupView made and all its copies; null
// where it gives none. Whether and how a group is swept is asked by whoever
// chooses a template, its knobs, and the moves from them. Lives as long as one of
// the views. Not thread-safe.
const SweepPlan* FindSweepPlan(const GroupView& view);

// The same with every level a stage of its own and every full output in a stage
// without reductions, so that each stage can be split over many blocks.
std::optional<SweepPlan> MakeSplitPlan(const GroupView& view);

// What FindSweepPlan keeps.
class SweepPlanMemo {
 public:
  const std::optional<SweepPlan>& PlanOf(const GroupView& view);

 private:
  std::optional<std::optional<SweepPlan>> plan_;
};

// Values outside the stage that a set of roots reads, through the group's maps:
// inputs of the group and kept results, in order of first use.
std::vector<std::string> ReadsOf(const GroupView& view, const SweepPlan::Stage& stage);

}  // namespace mtmc::kernel

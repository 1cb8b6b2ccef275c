// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "kernel/templates/knob_table.h"

namespace mtmc::kernel {

// Takes steps of a table from a group's present knobs, one after the other: how a
// template finds the knobs with which a group is worth timing first. Of the steps
// those that pay on nearly every shape. REQUIRES: the group's knobs are complete.
class StartingSteps {
 public:
  // The arguments outlive it.
  StartingSteps(const GroupView& view, const EmitTarget& target, const KnobTable& table);

  StartingSteps(const StartingSteps&) = delete;
  StartingSteps& operator=(const StartingSteps&) = delete;

  // Legal steps of an action, best bets first.
  std::vector<KnobMove> Moves(std::string_view action) const;

  void Take(const KnobMove& move) { group_.knobs = move.knobs; }

  // A complete set of knobs, unless it makes no legal kernel.
  void TakeIfLegal(const Knobs& knobs);

  // The best bet of an action, if it has one.
  void TakeFirst(std::string_view action);
  // The widest access that `vector` may have: sixteen bytes of a CUDA thread, whole
  // vector registers of a CPU core, several so that their latency is hidden.
  void Widen();

  const Knobs& knobs() const { return group_.knobs; }

 private:
  const EmitTarget& target_;
  const KnobTable& table_;
  KernelGroup group_;
  GroupView view_;
};

}  // namespace mtmc::kernel

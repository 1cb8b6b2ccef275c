// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/row_family.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "kernel/algebra/index_algebra.h"
#include "kernel/graph/text.h"
#include "kernel/templates/row_kernel.h"
#include "kernel/templates/row_mapping.h"

namespace mtmc::kernel {
namespace {

// The stage that decides: the one with the most elements.
const SweepPlan::Stage& MainStage(const SweepPlan& plan) {
  const auto elements = [](const SweepPlan::Stage& stage) {
    return stage.levels.empty() ? 0 : stage.space.rows * stage.space.columns();
  };
  return *std::max_element(plan.stages.begin(), plan.stages.end(),
                           [&](const auto& a, const auto& b) { return elements(a) < elements(b); });
}

int64_t PowerOfTwoUpTo(int64_t value, int64_t most) {
  int64_t power = 1;
  while (power * 2 <= value && power * 2 <= most) power *= 2;
  return power;
}

int64_t KnobAt(const Knobs& knobs, std::string_view name) {
  const auto found = knobs.find(name);
  return found == knobs.end() ? 1 : found->second;
}

// Collects moves away from the present knobs.
class MoveList {
 public:
  explicit MoveList(Knobs now) : now_(std::move(now)) {}

  // Adds the move unless it changes nothing.
  void Add(const std::string& action, const std::string& text,
           const std::vector<std::pair<std::string, int64_t>>& changes) {
    Knobs knobs = now_;
    for (const auto& [name, value] : changes) knobs[name] = value;
    if (knobs != now_) moves_.push_back({action, text, std::move(knobs)});
  }

  const Knobs& now() const { return now_; }

  std::vector<KnobMove> Take() { return std::move(moves_); }

 private:
  Knobs now_;
  std::vector<KnobMove> moves_;
};

void AddVectorMoves(const SweepPlan::Stage& stage, const EmitTarget& target, MoveList& moves) {
  const bool by_row = KnobAt(moves.now(), "by_row") != 0;
  const int64_t run = by_row ? stage.space.row_run : stage.space.inner;
  const std::vector<int64_t> widths = !target.is_cpu()
                                          ? std::vector<int64_t>{4, 2, 8, 1}
                                          : std::vector<int64_t>{64, 128, 32, 16, 8, 1};
  const std::string what = by_row ? "rows" : "columns";
  for (const int64_t width : widths) {
    if (run % width != 0) continue;
    moves.Add("vectorize",
              width == 1 ? Concat("one ", what.substr(0, what.size() - 1), " at a time")
                         : Concat("over ", width, " neighbouring ", what),
              {{"vector", width}});
  }
  // No listed width divides the run: the largest that does.
  if (target.is_cpu() && run % 8 != 0) {
    for (int64_t width = 128; width > 8; --width) {
      if (run % width != 0) continue;
      moves.Add("vectorize", Concat("over ", width, " neighbouring ", what), {{"vector", width}});
      break;
    }
  }
}

// Whether a thread of the present mapping could keep its part of a row from one
// sweep to the next.
bool FitsRegisters(const GroupView& view, const EmitTarget& target, const SweepPlan::Stage& stage) {
  if (stage.levels.size() < 2 && stage.full_outputs.empty()) return false;
  KernelGroup group = *view.group;
  group.knobs["cache"] = 1;
  GroupView caching = view;
  caching.group = &group;
  return FitMapping(caching, target, stage, {}).cache != 0;
}

void AddTileMoves(const GroupView& view, const EmitTarget& target, const SweepPlan::Stage& stage,
                  MoveList& moves) {
  if (target.is_cpu()) return;
  const bool by_row = KnobAt(moves.now(), "by_row") != 0;
  const int64_t depth = KnobAt(moves.now(), "depth");
  for (const int64_t block : {256, 128, 512, 1024, 64, 32}) {
    if (block > target.max_threads_per_block || block < depth) continue;
    moves.Add("tile", Concat("to ", block, " threads per block"), {{"block", block}});
  }
  if (by_row) {
    for (const int64_t slices : {8, 4, 16, 32, 1}) {
      // Fewer than eight columns each would not pay for the merge.
      const bool pays = slices == 1 || slices * 8 <= stage.space.columns();
      if (!pays || slices > KnobAt(moves.now(), "block")) continue;
      moves.Add("tile",
                slices == 1 ? "to one thread per row" : Concat("to ", slices, " threads per row"),
                {{"depth", slices}});
    }
  }
  if (KnobAt(moves.now(), "cache") == 0 && FitsRegisters(view, target, stage)) {
    moves.Add("tile", "with the row kept in registers", {{"cache", 1}});
  } else if (KnobAt(moves.now(), "cache") != 0) {
    moves.Add("tile", "with the row read again", {{"cache", 0}});
  }
}

void AddSplitMoves(const SweepPlan::Stage& stage, const EmitTarget& target, MoveList& moves) {
  // Worth it when rows alone leave the device idle: fewer blocks than eight per
  // compute unit, and enough columns for each piece.
  const bool by_row = KnobAt(moves.now(), "by_row") != 0;
  const int64_t per_block = by_row ? KnobAt(moves.now(), "block") * KnobAt(moves.now(), "vector") /
                                         std::max<int64_t>(KnobAt(moves.now(), "depth"), 1)
                                   : 1;
  const int64_t blocks = std::max<int64_t>(stage.space.rows / std::max<int64_t>(per_block, 1), 1);
  const int64_t wanted = target.compute_units * (!target.is_cpu() ? 8 : 2);
  for (const int64_t pieces : {256, 64, 16, 4, 2}) {
    if (blocks * pieces > wanted * 2 || stage.space.columns() < pieces * 1024) continue;
    moves.Add("split", Concat("each row into ", pieces, " pieces"), {{"split", pieces}});
  }
  moves.Add("split", "back to whole rows", {{"split", 1}});
}

}  // namespace

Knobs RowFamily::DefaultKnobs(const GroupView& view, const EmitTarget& target) const {
  const std::optional<SweepPlan> plan = MakeSweepPlan(view);
  Knobs knobs = {{"by_row", 0}, {"block", 1}, {"vector", 1},
                 {"depth", 1},  {"split", 1}, {"cache", 0}};
  if (!plan) return knobs;
  const RowSpace& space = MainStage(*plan).space;
  const bool by_row =
      IsAlwaysByRow() || (space.rows_are_contiguous && !space.columns_are_contiguous);
  knobs["by_row"] = by_row ? 1 : 0;
  if (target.is_cpu()) {
    // One row or element per work-item leaves nothing to vectorize; a few lanes
    // are the least that makes sense.
    for (const int64_t lanes : {8, 4, 2}) {
      if ((by_row ? space.row_run : space.inner) % lanes != 0) continue;
      knobs["vector"] = lanes;
      break;
    }
    return knobs;
  }
  const int64_t most = std::min<int64_t>(target.max_threads_per_block, 256);
  knobs["block"] = by_row ? most : std::max<int64_t>(32, PowerOfTwoUpTo(space.columns(), most));
  return knobs;
}

std::vector<KnobMove> RowFamily::Moves(const GroupView& view, const EmitTarget& target) const {
  const std::optional<SweepPlan> plan = MakeSweepPlan(view);
  if (!plan) return {};
  const SweepPlan::Stage& stage = MainStage(*plan);
  MoveList moves(view.group->knobs);
  AddVectorMoves(stage, target, moves);
  AddTileMoves(view, target, stage, moves);
  AddSplitMoves(stage, target, moves);
  if (!IsAlwaysByRow() && stage.space.rows > 1) {
    if (KnobAt(moves.now(), "by_row") != 0) {
      moves.Add("reorder", "to a block per row", {{"by_row", 0}, {"vector", 1}, {"depth", 1}});
    } else {
      moves.Add("reorder", "to a thread per row", {{"by_row", 1}, {"vector", 1}});
    }
  }
  return moves.Take();
}

std::vector<KnobSweep> RowFamily::Sweeps(const GroupView& view, const EmitTarget& target) const {
  const int64_t depth = KnobAt(view.group->knobs, "depth");
  // Slices and registers are laid out for one block size.
  if (target.is_cpu() || depth > 1 || KnobAt(view.group->knobs, "cache") != 0) return {};
  KnobSweep blocks{.knob = "block", .values = {KnobAt(view.group->knobs, "block")}};
  for (const int64_t block : {64, 128, 256, 512, 1024}) {
    if (block <= target.max_threads_per_block && block != blocks.values[0]) {
      blocks.values.push_back(block);
    }
  }
  return {blocks};
}

absl::StatusOr<Emission> RowFamily::Emit(const GroupView& view, const EmitTarget& target,
                                         const std::vector<std::string>& tuned) const {
  const bool is_split = KnobAt(view.group->knobs, "split") > 1;
  const std::optional<SweepPlan> plan = is_split ? MakeSplitPlan(view) : MakeSweepPlan(view);
  if (!plan) {
    return absl::InvalidArgumentError("group " + view.group->name + " has no row space");
  }
  Emission emission;
  for (const std::string& value : plan->kept) {
    if (std::find(view.outputs.begin(), view.outputs.end(), value) != view.outputs.end()) continue;
    emission.buffers.push_back({.role = Tensor::Role::kBuffer,
                                .name = value,
                                .type = view.nest->types.find(value)->second});
  }
  for (size_t i = 0; i < plan->stages.size(); ++i) {
    MTMC_ASSIGN_OR_RETURN(Emission stage, EmitStage(view, target, tuned, plan->stages[i], i));
    std::move(stage.buffers.begin(), stage.buffers.end(), std::back_inserter(emission.buffers));
    std::move(stage.steps.begin(), stage.steps.end(), std::back_inserter(emission.steps));
  }
  return emission;
}

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/row/row_knobs.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "kernel/graph/text.h"
#include "kernel/view/group_kind.h"
#include "kernel/view/sweep_plan.h"
#include "kernel/writer/accumulator.h"

namespace mtmc::kernel {
namespace {

using Table = TypedKnobTable<RowMapping>;

// Elements that lie evenly spaced along what the lanes of `knobs` run over.
int64_t RunOf(const RowMapping& knobs, const RowSpace& space) {
  return knobs.by_row != 0 ? space.row_run : space.inner;
}

// Of the fields of every state that a kernel of the plan merges in shared memory.
int64_t StateBytes(const SweepPlan& plan, const EmitTarget& target) {
  int64_t most = 0;
  for (const SweepPlan::Stage& stage : plan.stages) {
    int64_t bytes = 0;
    for (const std::vector<const Loop*>& level : stage.levels) {
      for (const Loop* loop : level) {
        const Accumulator accumulator(*loop, DialectText(target.dialect));
        for (const auto& field : accumulator.fields()) bytes += SizeOf(field.data_type);
      }
    }
    most = std::max(most, bytes);
  }
  return most;
}

// States that lie in shared memory at once: of all lanes of the slices, of a CUDA block's warps,
// or of all threads.
int64_t SharedStates(const RowMapping& knobs, const EmitTarget& target) {
  constexpr int64_t kMostWarps = 32;
  if (knobs.by_row != 0) return knobs.depth > 1 ? knobs.block * knobs.vector : 0;
  return target.dialect == Dialect::kCuda ? kMostWarps : knobs.block;
}

RowMapping DefaultsOf(const GroupView& view, const EmitTarget& target) {
  RowMapping knobs;
  const SweepPlan* plan = FindSweepPlan(view);
  if (plan == nullptr) return knobs;
  const RowSpace& space = MainStage(*plan).space;
  const bool by_row =
      HasWindow(view) || (space.rows_are_contiguous && !space.columns_are_contiguous);
  knobs.by_row = by_row ? 1 : 0;
  if (target.is_cpu()) {
    // One row or element per work-item leaves nothing to vectorize; a few lanes
    // are the least that makes sense.
    for (const int64_t lanes : {8, 4, 2}) {
      if (RunOf(knobs, space) % lanes != 0) continue;
      knobs.vector = lanes;
      break;
    }
    return knobs;
  }
  const int64_t most = PowerOfTwoUpTo(target.max_threads_per_block, 32, 256);
  knobs.block = by_row ? most : PowerOfTwoUpTo(space.columns(), 32, most);
  return knobs;
}

// What the sets of one group are measured against.
struct Limits {
  RowSpace space;
  int64_t state_bytes = 0;
  bool has_window = false;
};

absl::Status CheckKnobs(const RowMapping& knobs, const Limits& limits, const EmitTarget& target) {
  if (knobs.by_row == 0 && limits.has_window) return BadKnob("by_row", 0, "1 for a window");
  const int64_t least = target.is_cpu() ? 1 : 32;
  if (knobs.block < least || knobs.block > target.max_threads_per_block) {
    return BadKnob("block", knobs.block, Concat(least, " to ", target.max_threads_per_block));
  }
  const int64_t run = RunOf(knobs, limits.space);
  if (run % knobs.vector != 0) {
    return BadKnob("vector", knobs.vector,
                   Concat("a divisor of ", run, knobs.by_row != 0 ? " rows" : " columns"));
  }
  if (!target.is_cpu() && knobs.vector > 16) {
    return BadKnob("vector", knobs.vector, "at most 16 on a GPU");
  }
  if (knobs.depth > knobs.block) {
    return BadKnob("depth", knobs.depth, Concat("at most the block, ", knobs.block));
  }
  if (knobs.split > std::max<int64_t>(limits.space.columns(), 1)) {
    return BadKnob("split", knobs.split, Concat("at most the columns, ", limits.space.columns()));
  }
  const int64_t shared = SharedStates(knobs, target) * limits.state_bytes;
  if (shared > target.static_shared_bytes()) {
    return absl::InvalidArgumentError(Concat("\"block\", \"vector\" and \"depth\" need ", shared,
                                             " bytes of shared memory, at most ",
                                             target.static_shared_bytes(), " are there"));
  }
  return absl::OkStatus();
}

std::function<absl::Status(const RowMapping&)> LegalityOf(const GroupView& view,
                                                          const EmitTarget& target) {
  const SweepPlan* plan = FindSweepPlan(view);
  if (plan == nullptr) {
    return
        [](const RowMapping&) { return absl::InvalidArgumentError("the group has no row space"); };
  }
  const Limits limits{.space = MainStage(*plan).space,
                      .state_bytes = StateBytes(*plan, target),
                      .has_window = HasWindow(view)};
  return [limits, &target](const RowMapping& knobs) { return CheckKnobs(knobs, limits, target); };
}

// Collects steps away from the present knobs.
class StepList {
 public:
  explicit StepList(const RowMapping& now) : now_(now) {}

  const RowMapping& now() const { return now_; }

  void Add(int64_t RowMapping::*field, int64_t value, std::string text) {
    RowMapping knobs = now_;
    knobs.*field = value;
    Add(knobs, std::move(text));
  }

  void Add(const RowMapping& knobs, std::string text) {
    steps_.push_back({.text = std::move(text), .knobs = knobs});
  }

  std::vector<Table::Step> Take() { return std::move(steps_); }

 private:
  const RowMapping now_;
  std::vector<Table::Step> steps_;
};

void AddVectorSteps(const RowSpace& space, const EmitTarget& target, StepList& steps) {
  const int64_t run = RunOf(steps.now(), space);
  const std::vector<int64_t> widths = target.is_cpu() ? std::vector<int64_t>{64, 128, 32, 16, 8, 1}
                                                      : std::vector<int64_t>{4, 2, 8, 1};
  const std::string what = steps.now().by_row != 0 ? "rows" : "columns";
  const auto add = [&](int64_t width) {
    steps.Add(&RowMapping::vector, width,
              width == 1 ? Concat("one ", what.substr(0, what.size() - 1), " at a time")
                         : Concat("over ", width, " neighbouring ", what));
  };
  for (const int64_t width : widths) add(width);
  if (!target.is_cpu() || run % 8 == 0) return;
  // No listed width divides the run: the largest that does.
  for (int64_t width = 128; width > 8; --width) {
    if (run % width == 0) return add(width);
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

void AddTileSteps(const GroupView& view, const EmitTarget& target, const SweepPlan::Stage& stage,
                  StepList& steps) {
  if (target.is_cpu()) return;
  const RowMapping& now = steps.now();
  for (const int64_t block : {256, 128, 512, 1024, 64, 32}) {
    steps.Add(&RowMapping::block, block, Concat("to ", block, " threads per block"));
  }
  if (now.by_row != 0) {
    for (const int64_t slices : {8, 4, 16, 32, 1}) {
      // Fewer than eight columns each would not pay for the merge.
      if (slices > 1 && slices * 8 > stage.space.columns()) continue;
      steps.Add(&RowMapping::depth, slices,
                slices == 1 ? "to one thread per row" : Concat("to ", slices, " threads per row"));
    }
  }
  if (now.cache != 0) {
    steps.Add(&RowMapping::cache, 0, "with the row read again");
  } else if (FitsRegisters(view, target, stage)) {
    steps.Add(&RowMapping::cache, 1, "with the row kept in registers");
  }
}

void AddSplitSteps(const RowSpace& space, const EmitTarget& target, StepList& steps) {
  // Worth it when rows alone leave the device idle: fewer blocks than eight per
  // compute unit, and enough columns for each piece.
  const RowMapping& now = steps.now();
  const int64_t per_block = now.by_row != 0 ? now.block * now.vector / now.depth : 1;
  const int64_t blocks = std::max<int64_t>(space.rows / std::max<int64_t>(per_block, 1), 1);
  const int64_t wanted = target.compute_units * (target.is_cpu() ? 2 : 8);
  for (const int64_t pieces : {256, 64, 16, 4, 2}) {
    if (blocks * pieces > wanted * 2 || space.columns() < pieces * 1024) continue;
    steps.Add(&RowMapping::split, pieces, Concat("each row into ", pieces, " pieces"));
  }
  steps.Add(&RowMapping::split, 1, "back to whole rows");
}

std::vector<Table::Step> StepsFrom(const RowMapping& now, const GroupView& view,
                                   const EmitTarget& target) {
  const SweepPlan* plan = FindSweepPlan(view);
  if (plan == nullptr) return {};
  const SweepPlan::Stage& stage = MainStage(*plan);
  StepList steps(now);
  AddVectorSteps(stage.space, target, steps);
  AddTileSteps(view, target, stage, steps);
  AddSplitSteps(stage.space, target, steps);
  if (stage.space.rows > 1) {
    RowMapping other = now;
    other.vector = 1;
    other.by_row = now.by_row == 0 ? 1 : 0;
    if (other.by_row == 0) other.depth = 1;
    steps.Add(other, now.by_row != 0 ? "to a block per row" : "to a thread per row");
  }
  return steps.Take();
}

// Slices and registers are laid out for one block size.
std::vector<int64_t> SweptBlocks(const RowMapping& now, const EmitTarget& target) {
  if (target.is_cpu() || now.depth > 1 || now.cache != 0) return {};
  return {64, 128, 256, 512, 1024};
}

}  // namespace

const TypedKnobTable<RowMapping>& RowKnobs() {
  static const auto* const table =
      new Table({.rows = {{{"by_row", "reorder", {.least = 0, .most = 1}}, &RowMapping::by_row},
                          {{"vector", "vectorize", {.least = 1, .most = 128}}, &RowMapping::vector},
                          {{"block", "tile", {.least = 1, .most = 65536, .is_power_of_two = true}},
                           &RowMapping::block,
                           SweptBlocks},
                          {{"depth", "tile", {.least = 1, .most = 32, .is_power_of_two = true}},
                           &RowMapping::depth},
                          {{"cache", "tile", {.least = 0, .most = 1}}, &RowMapping::cache},
                          {{"split", "split", {.least = 1, .most = 1024}}, &RowMapping::split}},
                 .defaults = DefaultsOf,
                 .legality = LegalityOf,
                 .steps = StepsFrom});
  return *table;
}

}  // namespace mtmc::kernel

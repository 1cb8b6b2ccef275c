// SPDX-License-Identifier: Apache-2.0
#include "kernel/view/sweep_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "kernel/algebra/index_algebra.h"
#include "kernel/algebra/scalar_key.h"
#include "kernel/view/group_view.h"

namespace mtmc::kernel {
namespace {

ScalarPtr ReadOf(const GroupView& view, const std::string& value,
                 const std::vector<ScalarPtr>& indices) {
  return Read(value, indices, TypeOf(view, value).data_type);
}

// The reductions that outputs need, in definition order.
std::vector<const Loop*> NeededReductions(const GroupView& view) {
  std::set<const Loop*> needed;
  std::vector<std::string> pending = view.outputs;
  while (!pending.empty()) {
    const Loop* loop = FindLoop(view, pending.back());
    pending.pop_back();
    if (loop == nullptr || !needed.insert(loop).second) continue;
    for (const Scalar* read : Reads(loop->body)) pending.push_back(read->tensor);
  }
  std::vector<const Loop*> reductions;
  for (const Loop* loop : view.loops) {
    if (loop->form == Loop::Form::kReduce && needed.contains(loop)) reductions.push_back(loop);
  }
  return reductions;
}

class Planner {
 public:
  Planner(const GroupView& view, bool is_split) : view_(view), is_split_(is_split) {}

  std::optional<SweepPlan> Make() {
    const std::vector<const Loop*> reductions = NeededReductions(view_);
    if (reductions.empty()) return std::nullopt;
    for (const Loop* loop : reductions) {
      if (loop->types[0].elements() == 0) return std::nullopt;
      Place(*loop);
    }
    for (const std::string& value : view_.outputs) PlaceOutput(value);
    if (!maps_.map_outputs.empty()) plan_.stages.push_back(maps_);
    FindKept();
    return plan_;
  }

 private:
  struct Spot {
    size_t stage = 0;
    size_t level = 0;
  };

  // Whether an offset over axes {row, column} is the row itself.
  static bool IsRow(const ScalarPtr& offset, const std::vector<int64_t>& extents) {
    return KeyOf(SimplifyIndex(offset, extents)) == KeyOf(SimplifyIndex(Axis(0), extents));
  }

  static std::vector<int64_t> ExtentsOf(const RowSpace& space) {
    return {space.rows, space.columns()};
  }

  // Level at which `reads`, over axes {row, column}, can be evaluated in the
  // stage; absent when one of its results is read at another row.
  std::optional<size_t> LevelIn(size_t stage, const std::vector<ElementRead>& reads,
                                const std::vector<int64_t>& extents) const {
    size_t level = 0;
    for (const ElementRead& read : reads) {
      const auto spot = spots_.find(read.tensor);
      if (spot == spots_.end() || spot->second.stage != stage) continue;
      if (!IsRow(read.offset, extents)) return std::nullopt;
      level = std::max(level, spot->second.level + 1);
    }
    return level;
  }

  std::optional<size_t> LevelFor(const Loop& loop, const RowSpace& space) const {
    if (plan_.stages.empty()) return std::nullopt;
    const RowSpace& shared = plan_.stages.back().space;
    if (space.rows != shared.rows || space.columns() != shared.columns()) return std::nullopt;
    const std::vector<int64_t> extents = ExtentsOf(space);
    const ScalarPtr body = SubstituteAxes(loop.body, AxesAt(loop, Axis(0), Axis(1), extents));
    return LevelIn(plan_.stages.size() - 1, ElementReads(view_, body, extents), extents);
  }

  void Place(const Loop& loop) {
    const RowSpace space = MakeRowSpace(view_, loop);
    std::optional<size_t> level = LevelFor(loop, space);
    if (!level || (is_split_ && *level > 0)) {
      plan_.stages.push_back({.space = space});
      level = 0;
    }
    std::vector<std::vector<const Loop*>>& levels = plan_.stages.back().levels;
    if (levels.size() <= *level) levels.resize(*level + 1);
    levels[*level].push_back(&loop);
    for (const std::string& result : loop.results) {
      spots_[result] = {plan_.stages.size() - 1, *level};
    }
  }

  // The last stage whose results a value needs.
  size_t StageOf(const std::string& value) const {
    size_t stage = 0;
    bool has_any = false;
    std::set<std::string> seen;
    std::vector<std::string> pending = {value};
    while (!pending.empty()) {
      const std::string name = pending.back();
      pending.pop_back();
      if (!seen.insert(name).second) continue;
      if (const auto spot = spots_.find(name); spot != spots_.end()) {
        stage = std::max(stage, spot->second.stage);
        has_any = true;
        continue;
      }
      const Loop* loop = FindLoop(view_, name);
      if (loop == nullptr) continue;
      for (const Scalar* read : Reads(loop->body)) pending.push_back(read->tensor);
    }
    return has_any ? stage : plan_.stages.size() - 1;
  }

  bool FitsAt(size_t stage, const std::string& value, const std::vector<ScalarPtr>& indices) const {
    const std::vector<int64_t> extents = ExtentsOf(plan_.stages[stage].space);
    return LevelIn(stage, ElementReads(view_, ReadOf(view_, value, indices), extents), extents)
        .has_value();
  }

  void PlaceOutput(const std::string& value) {
    if (const auto spot = spots_.find(value); spot != spots_.end()) {
      plan_.stages[spot->second.stage].row_outputs.push_back(value);
      return;
    }
    const size_t at = StageOf(value);
    SweepPlan::Stage& stage = plan_.stages[at];
    const TensorType& type = TypeOf(view_, value);
    if (type.elements() == stage.space.rows) {
      const std::vector<ScalarPtr> indices = IndicesOf(type, Axis(0), ExtentsOf(stage.space));
      if (FitsAt(at, value, indices)) {
        stage.row_outputs.push_back(value);
        return;
      }
    }
    const auto indices =
        is_split_ ? std::nullopt : ElementIndices(view_, *stage.levels[0][0], type);
    if (indices && FitsAt(at, value, *indices)) {
      stage.full_outputs.push_back({value, *indices});
    } else {
      maps_.map_outputs.push_back(value);
    }
  }

  void FindKept() {
    for (size_t i = 0; i < plan_.stages.size(); ++i) {
      for (const std::string& value : ReadsOf(view_, plan_.stages[i])) {
        const bool is_known =
            std::find(plan_.kept.begin(), plan_.kept.end(), value) != plan_.kept.end();
        if (spots_.contains(value) && !is_known) plan_.kept.push_back(value);
      }
    }
    for (const std::string& value : plan_.kept) {
      std::vector<std::string>& outputs = plan_.stages[spots_[value].stage].row_outputs;
      if (std::find(outputs.begin(), outputs.end(), value) == outputs.end()) {
        outputs.push_back(value);
      }
    }
  }

  const GroupView& view_;
  const bool is_split_;
  SweepPlan plan_;
  SweepPlan::Stage maps_;
  std::map<std::string, Spot> spots_;
};

bool HoldsOnlyMapsAndReductions(const GroupView& view) {
  return !view.outputs.empty() &&
         std::all_of(view.loops.begin(), view.loops.end(), [](const Loop* loop) {
           return loop->form == Loop::Form::kMap || loop->form == Loop::Form::kReduce;
         });
}

}  // namespace

std::optional<SweepPlan> MakeSweepPlan(const GroupView& view) {
  if (!HoldsOnlyMapsAndReductions(view)) return std::nullopt;
  return Planner(view, /*is_split=*/false).Make();
}

const std::optional<SweepPlan>& SweepPlanMemo::PlanOf(const GroupView& view) {
  if (!plan_) plan_ = MakeSweepPlan(view);
  return *plan_;
}

const SweepPlan* FindSweepPlan(const GroupView& view) {
  const std::optional<SweepPlan>& plan = view.sweep_plans->PlanOf(view);
  return plan ? &*plan : nullptr;
}

std::optional<SweepPlan> MakeSplitPlan(const GroupView& view) {
  if (!HoldsOnlyMapsAndReductions(view)) return std::nullopt;
  return Planner(view, /*is_split=*/true).Make();
}

std::vector<std::string> ReadsOf(const GroupView& view, const SweepPlan::Stage& stage) {
  std::set<std::string> own;
  std::vector<std::string> reads;
  const auto add = [&](const ScalarPtr& root, std::span<const int64_t> extents) {
    for (const ElementRead& read : ElementReads(view, root, extents)) {
      if (own.contains(read.tensor)) continue;
      if (std::find(reads.begin(), reads.end(), read.tensor) == reads.end()) {
        reads.push_back(read.tensor);
      }
    }
  };
  for (const auto& level : stage.levels) {
    for (const Loop* loop : level) own.insert(loop->results.begin(), loop->results.end());
  }
  for (const auto& level : stage.levels) {
    for (const Loop* loop : level) add(loop->body, loop->extents);
  }
  std::vector<std::string> outputs = stage.row_outputs;
  outputs.insert(outputs.end(), stage.map_outputs.begin(), stage.map_outputs.end());
  for (const SweepPlan::FullOutput& output : stage.full_outputs) outputs.push_back(output.value);
  for (const std::string& value : outputs) {
    if (own.contains(value)) continue;
    const TensorType& type = TypeOf(view, value);
    add(ReadOf(view, value, Axes(static_cast<int>(type.shape.size()))), type.shape);
  }
  return reads;
}

}  // namespace mtmc::kernel

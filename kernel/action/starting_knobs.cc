// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/starting_knobs.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel/templates/family.h"
#include "kernel/view/contraction_space.h"

namespace mtmc::kernel {
namespace {

// Lanes of one thread: sixteen bytes of a CUDA thread, whole vector registers of
// a CPU core, several so that their latency is hidden.
constexpr int64_t kMostLanesOfGpu = 4;
constexpr int64_t kMostLanesOfCpu = 64;

int64_t KnobOf(const Knobs& knobs, std::string_view name) {
  const auto found = knobs.find(name);
  return found == knobs.end() ? 1 : found->second;
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / std::max<int64_t>(b, 1); }

// Takes steps of one group, one after the other.
class Chooser {
 public:
  Chooser(const ScheduleContext& context, const KernelGroup& group)
      : context_(context), group_(group) {
    group_.knobs.clear();
    view_ = MakeGroupView(context.graph, context.nest, context.index, group_);
    view_.group = &group_;
    group_ = WithAllKnobs(view_, context.target);
    view_.group = &group_;
    defaults_ = group_.knobs;
  }

  Chooser(const Chooser&) = delete;
  Chooser& operator=(const Chooser&) = delete;

  // Those that are not the defaults.
  Knobs Choose() {
    if (group_.family == FamilyKind::kContraction) {
      TakeTile();
    } else if (group_.family != FamilyKind::kLibrary) {
      // A CPU's compiler makes vectors across the threads of a map by itself.
      if (!is_cpu() || group_.family != FamilyKind::kPointwise) Widen();
      TakeFirst("split");
    }
    Knobs chosen = group_.knobs;
    std::erase_if(chosen, [this](const auto& knob) {
      const auto usual = defaults_.find(knob.first);
      return usual != defaults_.end() && usual->second == knob.second;
    });
    return chosen;
  }

 private:
  bool is_cpu() const { return context_.target.is_cpu(); }

  std::vector<KnobMove> Moves(std::string_view action) const {
    std::vector<KnobMove> moves = FamilyOf(group_.family).knobs().Moves(view_, context_.target);
    std::erase_if(moves, [action](const KnobMove& move) { return move.action != action; });
    return moves;
  }

  void TakeFirst(std::string_view action) {
    const std::vector<KnobMove> moves = Moves(action);
    if (!moves.empty()) group_.knobs = moves[0].knobs;
  }

  void Widen() {
    const int64_t most = is_cpu() ? kMostLanesOfCpu : kMostLanesOfGpu;
    for (const KnobMove& move : Moves("vectorize")) {
      const int64_t lanes = KnobOf(move.knobs, "vector");
      if (lanes <= most && lanes > KnobOf(group_.knobs, "vector")) group_.knobs = move.knobs;
    }
  }

  // The largest blocks that give every compute unit one; else the smallest.
  void TakeTile() {
    const std::vector<KnobMove> tiles = Moves("tile");
    if (tiles.empty()) return;
    const ContractionSpace space = SpaceOf(*FindContraction(view_));
    const auto blocks = [&space](const KnobMove& tile) {
      return space.batch * CeilDiv(space.m, KnobOf(tile.knobs, "bm")) *
             CeilDiv(space.n, KnobOf(tile.knobs, "bn"));
    };
    auto chosen = std::find_if(tiles.begin(), tiles.end(), [&](const KnobMove& tile) {
      return is_cpu() || blocks(tile) >= context_.target.compute_units;
    });
    if (chosen == tiles.end()) {
      chosen = std::max_element(
          tiles.begin(), tiles.end(),
          [&](const KnobMove& a, const KnobMove& b) { return blocks(a) < blocks(b); });
    }
    group_.knobs = chosen->knobs;
  }

  const ScheduleContext& context_;
  KernelGroup group_;
  Knobs defaults_;
  GroupView view_;
};

}  // namespace

Knobs StartingKnobs(const ScheduleContext& context, const KernelGroup& group) {
  return Chooser(context, group).Choose();
}

}  // namespace mtmc::kernel

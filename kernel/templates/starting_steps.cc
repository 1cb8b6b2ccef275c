// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/starting_steps.h"

#include <cstdint>

namespace mtmc::kernel {
namespace {

constexpr int64_t kMostLanesOfGpu = 4;
constexpr int64_t kMostLanesOfCpu = 64;

int64_t LanesOf(const Knobs& knobs) {
  const auto found = knobs.find("vector");
  return found == knobs.end() ? 1 : found->second;
}

}  // namespace

StartingSteps::StartingSteps(const GroupView& view, const EmitTarget& target,
                             const KnobTable& table)
    : target_(target), table_(table), group_(*view.group), view_(view) {
  view_.group = &group_;
}

std::vector<KnobMove> StartingSteps::Moves(std::string_view action) const {
  std::vector<KnobMove> moves = table_.Moves(view_, target_);
  std::erase_if(moves, [action](const KnobMove& move) { return move.action != action; });
  return moves;
}

void StartingSteps::TakeIfLegal(const Knobs& knobs) {
  KernelGroup group = group_;
  group.knobs = knobs;
  GroupView view = view_;
  view.group = &group;
  if (table_.Check(view, target_, {}).ok()) group_.knobs = knobs;
}

void StartingSteps::TakeFirst(std::string_view action) {
  const std::vector<KnobMove> moves = Moves(action);
  if (!moves.empty()) Take(moves[0]);
}

void StartingSteps::Widen() {
  const int64_t most = target_.is_cpu() ? kMostLanesOfCpu : kMostLanesOfGpu;
  for (const KnobMove& move : Moves("vectorize")) {
    const int64_t lanes = LanesOf(move.knobs);
    if (lanes <= most && lanes > LanesOf(knobs())) Take(move);
  }
}

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "server/search/rollout.h"

#include <set>

#include "server/search/known_step.h"

namespace mtmc::search {
namespace {

class Replay {
 public:
  Replay(const v1::Job& job, const Lineage& lineage)
      : max_steps_(MaxSteps(job.search())), lineage_(lineage) {}

  std::variant<Selection, End> Run() {
    size_t next_stop = 0;
    for (int trial = 0; trial <= lineage_.trials(); ++trial) {
      if (trial > 0) Step(trial);
      for (; next_stop < lineage_.stops.size() && lineage_.stops[next_stop].after_trial == trial;
           ++next_stop) {
        if (!lineage_.stops[next_stop].had_choice) exhausted_.insert(at_.parent);
        StartRollout(trial);
      }
    }
    if (exhausted_.contains(at_.parent) && at_.step == 0) return End{v1::Job::END_REASON_NO_ACTION};
    return at_;
  }

 private:
  void Step(int trial) {
    const auto& parent = lineage_.candidates[static_cast<size_t>(at_.parent)];
    const Outcome outcome = Compare(parent, lineage_.candidates[static_cast<size_t>(trial)]);
    at_.history.push_back({trial, outcome});
    const int original = OriginalOf(lineage_, trial);
    // No rollout begins with what another candidate is as well.
    if (original != trial) exhausted_.insert(trial);
    if (outcome == Outcome::kFaster || outcome == Outcome::kSame) at_.parent = original;
    if (++at_.step == max_steps_) StartRollout(trial);
  }

  void StartRollout(int newest_trial) {
    const int rollout = at_.rollout + 1;
    const int best = lineage_.BestOf(newest_trial, exhausted_).value_or(0);
    const bool may_be_start = IsCorrect(lineage_.candidates[0]) && !exhausted_.contains(0);
    at_ = Selection{.parent = rollout % 2 == 0 && may_be_start ? 0 : best, .rollout = rollout};
  }

  const int max_steps_;
  const Lineage& lineage_;
  // Trials of the candidates without an action that was not tried.
  std::set<int> exhausted_;
  Selection at_;
};

}  // namespace

std::variant<Selection, End> NextOfRollout(const v1::Job& job, const Lineage& lineage) {
  return Replay(job, lineage).Run();
}

}  // namespace mtmc::search

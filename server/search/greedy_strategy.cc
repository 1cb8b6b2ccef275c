// SPDX-License-Identifier: Apache-2.0
#include "server/search/greedy_strategy.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "server/search/known_step.h"

namespace mtmc::search {
namespace {

// Repairs first, for without them nothing else can be measured; then what
// usually gains most on a naive program: less memory traffic, then vendor
// calls, then the inside of a kernel; launches last.
constexpr v1::Action::Type kPreference[] = {
    v1::Action::TYPE_FIX_BUILD, v1::Action::TYPE_FIX_LAUNCH, v1::Action::TYPE_FIX_RESULT,
    v1::Action::TYPE_FUSE,      v1::Action::TYPE_LIBRARY,    v1::Action::TYPE_SIMPLIFY,
    v1::Action::TYPE_TENSORIZE, v1::Action::TYPE_TILE,       v1::Action::TYPE_REORDER,
    v1::Action::TYPE_VECTORIZE, v1::Action::TYPE_SPLIT,      v1::Action::TYPE_PIPELINE,
    v1::Action::TYPE_TUNE,      v1::Action::TYPE_CAPTURE,
};

// Position in the order; `stop` and unknown types come last.
size_t Rank(const v1::Action& action) {
  return static_cast<size_t>(
      std::distance(std::begin(kPreference),
                    std::find(std::begin(kPreference), std::end(kPreference), action.type())));
}

}  // namespace

std::variant<Selection, End> GreedyStrategy::Next(const Lineage& lineage) const {
  if (auto end = FindEnd(job_, lineage)) return *end;
  // Every stop was taken on the candidate that was best then.
  std::set<int> exhausted;
  for (int trial = 1; trial <= lineage.trials(); ++trial) {
    if (OriginalOf(lineage, trial) != trial) exhausted.insert(trial);
  }
  for (const Stop& stop : lineage.stops) {
    exhausted.insert(lineage.BestOf(stop.after_trial, exhausted).value_or(0));
  }
  const int parent = lineage.BestOf(lineage.trials(), exhausted).value_or(0);
  if (exhausted.contains(parent)) return End{v1::Job::END_REASON_NO_ACTION};
  Selection selection{.parent = parent, .step = lineage.trials()};
  for (int trial = 1; trial <= lineage.trials(); ++trial) {
    const auto& candidate = lineage.candidates[static_cast<size_t>(trial)];
    const auto& best =
        lineage.candidates[static_cast<size_t>(lineage.BestOf(trial - 1).value_or(0))];
    selection.history.push_back({trial, Compare(best, candidate)});
  }
  return selection;
}

std::optional<std::vector<double>> GreedyStrategy::Distribution(
    const std::vector<v1::Action>& actions) const {
  const auto first =
      std::min_element(actions.begin(), actions.end(),
                       [](const v1::Action& a, const v1::Action& b) { return Rank(a) < Rank(b); });
  std::vector<double> probabilities(actions.size(), 0);
  probabilities[static_cast<size_t>(std::distance(actions.begin(), first))] = 1;
  return probabilities;
}

}  // namespace mtmc::search

// SPDX-License-Identifier: Apache-2.0
#include "server/search/strategy.h"

#include <utility>

#include "common/base/check.h"
#include "server/search/evaluate_strategy.h"
#include "server/search/greedy_strategy.h"
#include "server/search/known_step.h"
#include "server/search/mtmc_strategy.h"
#include "server/search/random_strategy.h"
#include "server/search/rewritten.h"

namespace mtmc::search {

std::unique_ptr<const Strategy> MakeStrategy(const v1::Job& of) {
  // What strategies go by, without graph and device: there may be thousands of jobs.
  v1::Job job;
  *job.mutable_search() = of.search();
  *job.mutable_budget() = of.budget();
  switch (job.search().strategy_case()) {
    case v1::SearchOptions::kGreedy:
      return std::make_unique<GreedyStrategy>(std::move(job));
    case v1::SearchOptions::kRandom:
      return std::make_unique<RandomStrategy>(std::move(job));
    case v1::SearchOptions::kEvaluate:
      return std::make_unique<EvaluateStrategy>();
    case v1::SearchOptions::kMtmc:
      return std::make_unique<MtmcStrategy>(std::move(job));
    case v1::SearchOptions::STRATEGY_NOT_SET:
      break;
  }
  MTMC_CHECK(!"the job is resolved");
  return nullptr;
}

int MaxSteps(const v1::SearchOptions& search) {
  return search.has_random() ? search.random().max_steps() : search.mtmc().max_steps();
}

std::optional<End> FindEnd(const v1::Job& job, const Lineage& lineage) {
  const auto best = lineage.Best();
  if (best) {
    const v1::Candidate& candidate = lineage.candidates[static_cast<size_t>(*best)];
    // A baseline that is faster shows that the roofline is not the end; so does algebra, which
    // leaves less to be done.
    const bool is_ahead = Speedup(candidate).value_or(0) > 1 && !IsRewritten(candidate);
    const double ratio = candidate.evaluation().profile().speed_of_light_ratio();
    if (is_ahead && ratio >= job.search().speed_of_light_ratio()) {
      return End{v1::Job::END_REASON_SPEED_OF_LIGHT};
    }
  }
  if (TrialsAfter(lineage, 0) >= job.budget().max_trials()) return End{v1::Job::END_REASON_TRIALS};
  const int patience = job.search().patience();
  if (patience > 0 && TrialsAfter(lineage, best.value_or(0)) >= patience)
    return End{v1::Job::END_REASON_PATIENCE};
  return std::nullopt;
}

}  // namespace mtmc::search

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mtmc/v1/action.pb.h"
#include "mtmc/v1/job.pb.h"
#include "server/search/lineage.h"

namespace mtmc::search {

// Where the next trial starts from.
struct Selection {
  // Trial of the candidate to act on.
  int parent = 0;
  // Number of the rollout, 0 first, and of the step within it.
  int rollout = 0;
  int step = 0;

  // Trials of this rollout's earlier steps with what became of each, oldest
  // first.
  struct Past {
    int trial;
    Outcome outcome;
  };

  std::vector<Past> history;
};

// Why there is no next trial.
struct End {
  v1::Job::EndReason reason = v1::Job::END_REASON_UNSPECIFIED;
};

// A search algorithm as selection x operator x termination over the lineage
// (KernelEvolve's formalism). It has no state of its own: equal lineages give
// equal answers, which is what makes a restart a replay. Implementations MUST
// keep that. Thread-safe.
class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual std::string name() const = 0;

  // Selection and termination. REQUIRES: every candidate of `lineage` is
  // finished, and there is at least the start candidate.
  virtual std::variant<Selection, End> Next(const Lineage& lineage) const = 0;

  // Operator: probabilities of the legal actions, parallel to them and summing
  // to 1, or nothing when the macro policy is to be asked. The draw is the
  // caller's. REQUIRES: `actions` is not empty.
  virtual std::optional<std::vector<double>> Distribution(
      const std::vector<v1::Action>& actions) const = 0;

  // Whether a trial may take a step on every group (at_once.h), and put together
  // what was measured of each (mix.h). False for an ablation.
  virtual bool joins_steps() const { return true; }
};

// The strategy that a job asks for: `mtmc`, `greedy`, `random` or `evaluate`.
// REQUIRES: the job is resolved (job_options.h).
std::unique_ptr<const Strategy> MakeStrategy(const v1::Job& job);

// Most steps of one rollout, for the strategies that have rollouts; else 0.
int MaxSteps(const v1::SearchOptions& search);

// The limits that hold for every strategy: trials, patience and speed of light.
std::optional<End> FindEnd(const v1::Job& job, const Lineage& lineage);

}  // namespace mtmc::search

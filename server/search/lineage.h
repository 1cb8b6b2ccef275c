// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"

namespace mtmc::search {

// What became of a candidate compared with the one it was made from.
enum class Outcome { kFaster, kSame, kSlower, kWrong, kFailed };

// `faster`, `same`, `slower`, `wrong` or `failed`, as policies read it.
const char* ToText(Outcome outcome);

// Whether nothing is left to do for the candidate.
bool IsFinished(const v1::Candidate& candidate);

// Whether the candidate is evaluated, verified and timed.
bool IsCorrect(const v1::Candidate& candidate);

// Whether it is correct, and was asked all that winners are.
bool IsConfirmed(const v1::Candidate& candidate);

// Speedup over the first baseline, the lower one where two sessions disagree; absent unless
// the candidate is correct.
std::optional<double> Speedup(const v1::Candidate& candidate);

// How `child` did against `parent`. Faster and slower begin at 2 % or at the
// noise of either measurement, whichever is larger: below it a difference is
// not one. A correct child of an incorrect parent is faster.
Outcome Compare(const v1::Candidate& parent, const v1::Candidate& child);

// By how much a candidate has to be faster than the best one to be a winner. Less cannot be told
// apart (docs/measurement.md), and all that is asked of a winner would be asked for nothing.
inline constexpr double kLeastGain = 1.01;

// Trial of the candidate that `child` was made from. REQUIRES: it has a parent.
int ParentTrial(const v1::Candidate& child);

// A decision to end a rollout: drawn, or because nothing else was left.
struct Stop {
  // Newest trial when it was taken.
  int after_trial = 0;
  // False when `stop` was the only action left.
  bool had_choice = true;
};

// The candidates of one job by trial, and the stops between them: everything a
// strategy decides on. It is what the job's event log says and nothing else, so
// that a search that was killed goes on as if it had not been. A value.
//
// Of a finished candidate it keeps what is decided by and what policies and coders read,
// a tenth of all: not the probabilities of its decision, nor the samples, variants, checks,
// stages and conditions of its evaluation, which the store has.
struct Lineage {
  // Index is the trial; every index up to the newest is there.
  std::vector<v1::Candidate> candidates;
  std::vector<Stop> stops;

  // Brings the lineage up to date with the next event of the job's log.
  void Apply(const v1::JobEvent& event);

  // What is kept of `candidate`, which is as it was when this returns: much less than a copy.
  static v1::Candidate Kept(v1::Candidate& candidate);

  // Inserts or replaces by trial.
  void Put(v1::Candidate candidate);

  // Trials that were begun, the start candidate not counted.
  int trials() const;

  // Trial of the correct candidate with the highest speedup among the first
  // `trials` ones (start included) without those of `except`; the oldest one of
  // equals, to which one belongs that was not asked all that winners are, and is faster by less
  // than kLeastGain.
  std::optional<int> BestOf(int trials, const std::set<int>& except = {}) const;

  // Trial of the best candidate once the one of its trial is as `changed`.
  std::optional<int> BestWith(const v1::Candidate& changed) const;

  std::optional<int> Best() const { return BestOf(this->trials()); }

  // Trial of the best one of those that are confirmed.
  std::optional<int> BestConfirmed() const;
};

}  // namespace mtmc::search

// SPDX-License-Identifier: Apache-2.0
#include "server/search/lineage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "common/base/check.h"

namespace mtmc::search {
namespace {

// The least difference that counts: 2 % is what the measurement of a short
// kernel repeats to on a quiet device.
constexpr double kMinEffect = 0.02;

double NoiseOf(const v1::Candidate& candidate) {
  return candidate.evaluation().measurement().noise_ratio();
}

// How many times faster `child` is than `parent`; both are correct. Speedups
// over the same baseline cancel the drift of a device between two sessions.
double Ratio(const v1::Candidate& parent, const v1::Candidate& child) {
  const auto parent_speedup = Speedup(parent);
  const auto child_speedup = Speedup(child);
  if (parent_speedup && child_speedup && *parent_speedup > 0) {
    return *child_speedup / *parent_speedup;
  }
  const double child_seconds = child.evaluation().measurement().median_seconds();
  return child_seconds > 0 ? parent.evaluation().measurement().median_seconds() / child_seconds : 1;
}

// What the lineage has no use for, of a candidate that is finished. It moves from one candidate to
// another, so that a field that is given away leaves no memory behind, as one that is cleared does.
void GiveDetails(v1::Comparison& from, v1::Comparison& to) {
  to.set_allocated_baseline_measurement(from.release_baseline_measurement());
}

void GiveDetails(v1::Evaluation& from, v1::Evaluation& to) {
  to.set_allocated_fingerprint(from.release_fingerprint());
  to.set_allocated_session(from.release_session());
  to.mutable_isolation()->Swap(from.mutable_isolation());
  to.mutable_variants()->Swap(from.mutable_variants());
  to.mutable_spans()->Swap(from.mutable_spans());
  to.set_allocated_checks(from.release_checks());
  if (from.has_measurement()) {
    to.mutable_measurement()->mutable_samples_seconds()->Swap(
        from.mutable_measurement()->mutable_samples_seconds());
  }
  to.set_allocated_confirmation(from.release_confirmation());
  if (from.has_confirmed()) GiveDetails(*from.mutable_confirmed(), *to.mutable_confirmed());
  for (int i = 0; i < from.comparisons_size(); ++i) {
    if (i == to.comparisons_size()) to.add_comparisons();
    GiveDetails(*from.mutable_comparisons(i), *to.mutable_comparisons(i));
  }
}

void GiveDetails(v1::Candidate& from, v1::Candidate& to) {
  if (from.has_decision()) {
    to.mutable_decision()->mutable_choices()->Swap(from.mutable_decision()->mutable_choices());
  }
  if (from.has_evaluation()) GiveDetails(*from.mutable_evaluation(), *to.mutable_evaluation());
}

// Finds the best of candidates in the order of their trials.
class Race {
 public:
  // Borrows `candidate`.
  void Enter(const v1::Candidate& candidate) {
    if (best_ ? IsBetter(candidate, *best_) : IsCorrect(candidate)) best_ = &candidate;
  }

  // Its trial; absent where none is correct.
  std::optional<int> winner() const {
    return best_ ? std::optional<int>(best_->trial()) : std::nullopt;
  }

 private:
  static bool IsBetter(const v1::Candidate& candidate, const v1::Candidate& best) {
    const auto speedup = Speedup(candidate);
    const double gain = candidate.evaluation().skipped_confirmation() ? kLeastGain : 1;
    return speedup && *speedup > gain * Speedup(best).value_or(0);
  }

  const v1::Candidate* best_ = nullptr;
};

}  // namespace

bool IsFinished(const v1::Candidate& candidate) {
  return candidate.state() != v1::Candidate::STATE_PENDING &&
         candidate.state() != v1::Candidate::STATE_RUNNING;
}

const char* ToText(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFaster:
      return "faster";
    case Outcome::kSame:
      return "same";
    case Outcome::kSlower:
      return "slower";
    case Outcome::kWrong:
      return "wrong";
    case Outcome::kFailed:
      return "failed";
  }
  return "failed";
}

bool IsCorrect(const v1::Candidate& candidate) {
  return candidate.state() == v1::Candidate::STATE_EVALUATED &&
         !candidate.evaluation().has_failure() &&
         candidate.evaluation().verdict() == v1::Evaluation::VERDICT_CORRECT &&
         candidate.evaluation().has_measurement();
}

bool IsConfirmed(const v1::Candidate& candidate) {
  return IsCorrect(candidate) && !candidate.evaluation().skipped_confirmation();
}

std::optional<double> Speedup(const v1::Candidate& candidate) {
  if (!IsCorrect(candidate) || candidate.evaluation().comparisons().empty()) return std::nullopt;
  const v1::Evaluation& evaluation = candidate.evaluation();
  const v1::Comparison& first = evaluation.comparisons(0);
  const bool is_in_doubt =
      evaluation.has_confirmed() && first.outcome() == v1::Comparison::OUTCOME_AMBIGUOUS;
  return is_in_doubt ? std::min(first.speedup(), evaluation.confirmed().speedup())
                     : first.speedup();
}

Outcome Compare(const v1::Candidate& parent, const v1::Candidate& child) {
  if (!IsCorrect(child)) {
    const auto kind = child.evaluation().failure().kind();
    const bool is_wrong = kind == v1::Failure::KIND_WRONG_RESULT ||
                          child.evaluation().verdict() == v1::Evaluation::VERDICT_WRONG;
    return is_wrong ? Outcome::kWrong : Outcome::kFailed;
  }
  if (!IsCorrect(parent)) return Outcome::kFaster;
  const double ratio = Ratio(parent, child);
  const double effect = std::max({kMinEffect, NoiseOf(parent), NoiseOf(child)});
  if (ratio > 1 + effect) return Outcome::kFaster;
  return ratio < 1 - effect ? Outcome::kSlower : Outcome::kSame;
}

int ParentTrial(const v1::Candidate& child) {
  // `.../c12` to 12; names are made by the search alone.
  const std::string& name = child.parents(0);
  int trial = 0;
  MTMC_CHECK(absl::SimpleAtoi(name.substr(name.rfind("/c") + 2), &trial));
  return trial;
}

void Lineage::Apply(const v1::JobEvent& event) {
  if (event.has_candidate()) Put(event.candidate());
  if (event.has_decision()) {
    stops.push_back({.after_trial = trials(), .had_choice = event.decision().choices_size() > 1});
  }
}

v1::Candidate Lineage::Kept(v1::Candidate& candidate) {
  if (!IsFinished(candidate)) return candidate;
  v1::Candidate details;
  GiveDetails(candidate, details);
  v1::Candidate kept = candidate;
  GiveDetails(details, candidate);
  return kept;
}

void Lineage::Put(v1::Candidate candidate) {
  if (v1::Candidate details; IsFinished(candidate)) GiveDetails(candidate, details);
  const auto trial = static_cast<size_t>(candidate.trial());
  if (trial >= candidates.size()) candidates.resize(trial + 1);
  candidates[trial] = std::move(candidate);
}

int Lineage::trials() const {
  return candidates.empty() ? 0 : static_cast<int>(candidates.size()) - 1;
}

std::optional<int> Lineage::BestWith(const v1::Candidate& changed) const {
  Race race;
  const int most = std::max(trials(), changed.trial());
  for (int trial = 0; trial <= most; ++trial) {
    race.Enter(trial == changed.trial() ? changed : candidates[static_cast<size_t>(trial)]);
  }
  return race.winner();
}

std::optional<int> Lineage::BestOf(int trials, const std::set<int>& except) const {
  Race race;
  for (int trial = 0; trial <= trials && trial < static_cast<int>(candidates.size()); ++trial) {
    if (!except.contains(trial)) race.Enter(candidates[static_cast<size_t>(trial)]);
  }
  return race.winner();
}

std::optional<int> Lineage::BestConfirmed() const {
  Race race;
  for (const v1::Candidate& candidate : candidates) {
    if (IsConfirmed(candidate)) race.Enter(candidate);
  }
  return race.winner();
}

}  // namespace mtmc::search

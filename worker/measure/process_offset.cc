// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/process_offset.h"

#include <algorithm>
#include <cmath>

#include "worker/measure/statistics.h"

namespace mtmc::worker {
namespace {

constexpr size_t kMinTurns = 4;

// One turn of 12 samples a side has a standard deviation of 0.09 us on an H200: enough of
// them to know the mean as below.
constexpr size_t kMostTurns = 400;

// What is left of a process with the offset taken off has a standard deviation of
// 0.013 us; an error of half of that is not worth more turns.
constexpr double kKnownSeconds = 0.017e-6;

// A larger offset is none of a process: nothing is corrected by it.
constexpr double kMostSeconds = 0.5e-6;

// Pairs that are remembered; processes that ended are never asked for again.
constexpr size_t kMostPairs = 16;

}  // namespace

ProcessOffsets::Pair ProcessOffsets::PairOf(int64_t baseline, int64_t candidate) {
  return {std::min(baseline, candidate), std::max(baseline, candidate)};
}

void ProcessOffsets::Add(const SampleBlock& baseline, const SampleBlock& candidate) {
  if (baseline.yardstick_seconds.empty() || candidate.yardstick_seconds.empty()) return;
  const bool is_candidate_younger = baseline.process <= candidate.process;
  const SampleBlock& younger = is_candidate_younger ? candidate : baseline;
  const SampleBlock& older = is_candidate_younger ? baseline : candidate;
  std::vector<double>& turns = differences_[PairOf(baseline.process, candidate.process)];
  turns.push_back(MidMean(younger.yardstick_seconds) - MidMean(older.yardstick_seconds));
  if (turns.size() > kMostTurns) turns.erase(turns.begin());
  if (differences_.size() > kMostPairs) differences_.erase(differences_.begin());
}

std::optional<ProcessOffset> ProcessOffsets::Find(int64_t baseline, int64_t candidate) const {
  const auto found = differences_.find(PairOf(baseline, candidate));
  if (found == differences_.end() || found->second.size() < kMinTurns) return std::nullopt;
  const TrimmedMean mean = TrimmedMeanOf(found->second);
  if (std::abs(mean.mean) > kMostSeconds) return std::nullopt;
  return ProcessOffset{.seconds = baseline <= candidate ? mean.mean : -mean.mean,
                       .error_seconds = (mean.interval.high - mean.interval.low) / 2};
}

bool ProcessOffsets::IsKnown(int64_t baseline, int64_t candidate) const {
  const auto found = differences_.find(PairOf(baseline, candidate));
  if (found == differences_.end()) return false;
  if (found->second.size() >= kMostTurns) return true;
  const auto offset = Find(baseline, candidate);
  return offset && offset->error_seconds <= kKnownSeconds;
}

}  // namespace mtmc::worker

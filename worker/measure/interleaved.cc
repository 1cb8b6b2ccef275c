// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/interleaved.h"

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "worker/measure/statistics.h"

namespace mtmc::worker {
namespace {

// The first turn has one sample: its length decides the block length.
constexpr int kFirstBlock = 1;
// More than this in one turn would let drift in.
constexpr int kMaxBlock = 20;
// Warm-ups before the first turn fill code and instruction caches; one before
// each later turn undoes what the other side did to them.
constexpr int kFirstWarmups = 2;
constexpr int kLaterWarmups = 1;

int NextBlock(const std::vector<double>& seconds, absl::Duration block_time) {
  const double each = std::max(Median(seconds), 1e-7);
  const double count = std::floor(absl::ToDoubleSeconds(block_time) / each);
  return static_cast<int>(std::clamp(count, 1.0, static_cast<double>(kMaxBlock)));
}

// One side of the comparison with its samples so far.
class Turn {
 public:
  Turn(const Sampler& sampler, InterleavedSamples::Series& series)
      : sampler_(sampler), series_(series) {}

  absl::Status Take(absl::Duration block_time) {
    const bool is_first = series_.seconds.empty();
    const int count = is_first ? kFirstBlock : NextBlock(series_.seconds, block_time);
    MTMC_ASSIGN_OR_RETURN(SampleBlock block,
                          sampler_(count, is_first ? kFirstWarmups : kLaterWarmups));
    series_.seconds.insert(series_.seconds.end(), block.seconds.begin(), block.seconds.end());
    series_.throttled += block.throttled;
    return absl::OkStatus();
  }

  const std::vector<double>& seconds() const { return series_.seconds; }

 private:
  const Sampler& sampler_;
  InterleavedSamples::Series& series_;
};

// The weakest reason of all sides: kGoOn while any side needs more.
StoppingRule::Reason DecideAll(const std::vector<Turn>& turns, const StoppingRule& rule,
                               absl::Duration elapsed) {
  auto reason = StoppingRule::Reason::kNoise;
  for (const Turn& turn : turns) {
    const auto own = rule.Decide(turn.seconds(), elapsed);
    if (own == StoppingRule::Reason::kGoOn) return own;
    if (own != StoppingRule::Reason::kNoise) reason = own;
  }
  return reason;
}

}  // namespace

absl::StatusOr<InterleavedSamples> SampleInterleaved(const Sampler& candidate,
                                                     const std::vector<Sampler>& baselines,
                                                     const StoppingRule& rule,
                                                     const base::Clock& clock,
                                                     absl::Duration block_time) {
  InterleavedSamples samples;
  samples.baselines.resize(baselines.size());
  std::vector<Turn> turns;
  turns.emplace_back(candidate, samples.candidate);
  for (size_t i = 0; i < baselines.size(); ++i) {
    turns.emplace_back(baselines[i], samples.baselines[i]);
  }
  const absl::Time start = clock.Now();
  do {
    for (Turn& turn : turns) MTMC_RETURN_IF_ERROR(turn.Take(block_time));
    samples.stopped_by = DecideAll(turns, rule, clock.Now() - start);
  } while (samples.stopped_by == StoppingRule::Reason::kGoOn);
  return samples;
}

}  // namespace mtmc::worker

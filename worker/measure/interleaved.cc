// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/interleaved.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/measure/comparison.h"
#include "worker/measure/statistics.h"

namespace mtmc::worker {
namespace {

// More than this in one turn would let drift in.
constexpr int kMaxBlock = 25;
// At least this many, so that the warm-up of a turn costs no more than a third.
constexpr int kMinBlock = 2;
// After so many turns they become twice as long, up to what TurnPlan says.
constexpr int kTurnsOfLength = 10;
// Executions before the first sample of a turn, which fill code and instruction caches and
// undo what the other side did to them.
constexpr int kWarmups = 1;

// With fewer turns the interval is not worth its cost.
constexpr int kMinComparedTurns = 4;

// Samples of a turn of a short program: each turn has the data at other places, whose
// differences more samples do not average.
constexpr int kShortBlock = 6;

// With the yardstick, whose every sample has another place.
constexpr int kYardstickBlock = 12;

// One turn of so many times the yardstick where the processes are known.
constexpr int kTurnsOfYardstick = 8;

// Where processes are corrected for their offset, the floor has to hold more than the
// interval: what is left of the processes and of places. So the interval must be narrower,
// by this ratio.
constexpr double kCorrectedInterval = 0.9;

// Logarithm of a speedup up to which its interval must be as narrow as near 1; 1.35
// times. Who is twice as fast need not be known as closely as who is 2 % faster.
constexpr double kNearSpeedup = 0.3;

// Of each launch: up to here the floor of a comparison would be that of its processes
// (ComparisonOptions), if it were not for the yardstick.
constexpr double kShortSeconds = 20e-6;

// One side of the comparison with its samples so far.
class Side {
 public:
  Side(const Sampler& sampler, Series& series, const base::Clock& clock)
      : sampler_(sampler), series_(series), clock_(clock) {}

  // The first turn, which finds the block length, of one sample: it may last seconds.
  absl::Status Prepare(const TurnPlan& turns) {
    const absl::Time start = clock_.Now();
    MTMC_ASSIGN_OR_RETURN(SampleBlock block, sampler_({.samples = 1, .warmups = kWarmups}));
    const absl::Duration elapsed = clock_.Now() - start;
    const absl::Duration each = std::max(elapsed / (1 + kWarmups), absl::Microseconds(1));
    const double seconds =
        block.seconds.empty() ? absl::ToDoubleSeconds(each) : block.seconds.front();
    const bool is_long = absl::Seconds(seconds) >= turns.long_sample;
    is_short_ = seconds < kShortSeconds * block.launches;
    auto length_of = [&](absl::Duration time) {
      const double count = std::floor(absl::FDivDuration(time, each));
      return static_cast<int>(std::clamp<double>(count, kMinBlock, kMaxBlock));
    };
    block_ = is_long ? 1 : length_of(turns.first_time);
    // What is done once, at first, makes an execution look longer than it is.
    longest_block_ = is_long ? 1 : is_short_ ? kShortBlock : length_of(turns.time);
    block_ = std::min(block_, longest_block_);
    series_.turns.push_back(std::move(block));
    return absl::OkStatus();
  }

  absl::Status TakeTurn(bool with_yardstick) {
    const bool is_next_length =
        !series_.turns.empty() && series_.turns.size() % kTurnsOfLength == 0;
    if (is_next_length) block_ = std::min(2 * block_, longest_block_);
    const int most = is_short_ ? kYardstickBlock : longest_block_;
    MTMC_ASSIGN_OR_RETURN(SampleBlock block,
                          sampler_({.samples = with_yardstick ? most : block_,
                                    .warmups = longest_block_ == 1 ? 0 : kWarmups,
                                    .with_yardstick = with_yardstick}));
    series_.turns.push_back(std::move(block));
    return absl::OkStatus();
  }

  bool is_short() const { return is_short_; }

  void DropTurns() { series_.turns.clear(); }

  const SampleBlock& last_turn() const { return series_.turns.back(); }

 private:
  const Sampler& sampler_;
  Series& series_;
  const base::Clock& clock_;
  int block_ = 1;
  int longest_block_ = 1;
  bool is_short_ = false;
};

// In which turns the sides of a session time the yardstick, and what comes of it. The first
// side is the candidate; all have taken a turn.
class YardstickPlan {
 public:
  // `is_wanted` as long as all have one.
  YardstickPlan(const std::vector<Side>& sides, ProcessOffsets& offsets, bool is_wanted)
      : sides_(sides), offsets_(offsets), is_timed_(is_wanted) {
    for (const Side& side : sides) processes_.push_back(side.last_turn().process);
  }

  // Whether it is in any turn.
  bool is_timed() const { return is_timed_; }

  bool IsTimedIn(int turn) const {
    return is_timed_ && (turn % kTurnsOfYardstick == 0 || !AreKnown());
  }

  // After a turn with the yardstick.
  void Learn() {
    const SampleBlock& candidate = sides_.front().last_turn();
    for (const Side& side : sides_) {
      is_timed_ = is_timed_ && !side.last_turn().yardstick_seconds.empty();
      if (&side != &sides_.front()) offsets_.Add(side.last_turn(), candidate);
    }
  }

 private:
  bool AreKnown() const {
    return std::all_of(processes_.begin() + 1, processes_.end(), [this](int64_t baseline) {
      return offsets_.IsKnown(baseline, processes_.front());
    });
  }

  const std::vector<Side>& sides_;
  ProcessOffsets& offsets_;
  bool is_timed_;
  // Numbers, parallel to the sides.
  std::vector<int64_t> processes_;
};

// Half width of the interval of the speedup; less where that need not be as exact, more
// where it must be more exact.
double IntervalRatio(const Series& baseline, const Series& candidate, const ProcessOffsets& offsets,
                     bool is_corrected) {
  const ComparisonOptions options{.offset = offsets.Find(baseline, candidate)};
  const ComparisonResult result = CompareSeries(baseline, candidate, options);
  const double width = std::log(result.interval.high / result.interval.low) / 2;
  // Under half of the floor, wherever that is.
  const double near =
      is_corrected ? kCorrectedInterval * result.floor_ratio / options.floor_ratio : 1;
  return width / (near * std::max(1.0, std::abs(std::log(result.speedup)) / kNearSpeedup));
}

Progress Look(const InterleavedSamples& samples, const ProcessOffsets& offsets, bool is_corrected,
              absl::Duration elapsed) {
  Progress progress{.elapsed = elapsed};
  auto add = [&](const Series& series, bool is_first) {
    const std::vector<double> seconds = series.Seconds();
    const int count = static_cast<int>(seconds.size());
    const int turns = static_cast<int>(series.turns.size());
    progress.samples = is_first ? count : std::min(progress.samples, count);
    progress.turns = is_first ? turns : std::min(progress.turns, turns);
    if (count > 0) progress.error_ratio = std::max(progress.error_ratio, MedianErrorRatio(seconds));
  };
  add(samples.candidate, true);
  for (const Series& baseline : samples.baselines) add(baseline, false);
  if (samples.baselines.empty()) return progress;
  if (progress.samples == 0 || progress.turns < kMinComparedTurns) {
    progress.interval_ratio = 1;
    return progress;
  }
  for (const Series& baseline : samples.baselines) {
    progress.interval_ratio = std::max(
        progress.interval_ratio, IntervalRatio(baseline, samples.candidate, offsets, is_corrected));
  }
  return progress;
}

}  // namespace

absl::StatusOr<InterleavedSamples> SampleInterleaved(
    const Sampler& candidate, const std::vector<Sampler>& baselines, const StoppingRule& rule,
    const base::Clock& clock, ProcessOffsets& offsets, const TurnPlan& turns) {
  InterleavedSamples samples;
  samples.baselines.resize(baselines.size());
  std::vector<Side> sides;
  sides.emplace_back(candidate, samples.candidate, clock);
  for (size_t i = 0; i < baselines.size(); ++i) {
    sides.emplace_back(baselines[i], samples.baselines[i], clock);
  }
  const absl::Time start = clock.Now();
  for (Side& side : sides) MTMC_RETURN_IF_ERROR(side.Prepare(turns));
  const bool is_short =
      std::any_of(sides.begin(), sides.end(), [](const Side& side) { return side.is_short(); });
  YardstickPlan yardstick(sides, offsets, is_short && sides.size() > 1);
  // One sample of a short kernel says too little to count.
  if (is_short) {
    for (Side& side : sides) side.DropTurns();
  }
  for (int turn = 0;; ++turn) {
    samples.stopped_by =
        rule.Decide(Look(samples, offsets, yardstick.is_timed(), clock.Now() - start));
    if (samples.stopped_by != StoppingRule::Reason::kGoOn) return samples;
    const bool with_yardstick = yardstick.IsTimedIn(turn);
    for (size_t i = 0; i < sides.size(); ++i) {
      // Every other turn in reverse.
      Side& side = sides[turn % 2 == 0 ? i : sides.size() - 1 - i];
      MTMC_RETURN_IF_ERROR(side.TakeTurn(with_yardstick));
    }
    if (with_yardstick) yardstick.Learn();
  }
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/sweep.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/time/clock.h"
#include "worker/measure/statistics.h"

namespace mtmc::worker {
namespace {

// The median of three tells which variants are worth the second heat.
constexpr int kScreenSamples = 3;

// Enough to separate finalists that differ by a few percent.
constexpr int kFinalSamples = 11;
constexpr size_t kFinalists = 3;

// A first execution, with a cold instruction cache, can be half as slow again as
// the median that follows; one above this has no chance.
constexpr double kHopelessRatio = 2;

// Nobody's fault: the process is gone or the device fails its canary.
bool IsBlameless(const v1::Failure& failure) {
  return failure.kind() == v1::Failure::KIND_UNSPECIFIED;
}

}  // namespace

pipe::v1::RunnerRequest LoadRequestOf(const BuiltVariant& variant, const std::string& text,
                                      const std::vector<std::string>& allowed_calls) {
  pipe::v1::RunnerRequest request;
  auto& load = *request.mutable_load();
  load.set_program(text);
  load.set_binary(variant.binary);
  *load.mutable_parameters() = variant.variant.parameters();
  load.mutable_allowed_calls()->Assign(allowed_calls.begin(), allowed_calls.end());
  return request;
}

Sweep::Sweep(RunnerParty& runner, Verifier& verifier, Options options)
    : runner_(runner), verifier_(verifier), options_(std::move(options)) {}

std::variant<Sweep::Outcome, StageEnd> Sweep::Run(const std::vector<BuiltVariant>& variants) {
  for (const BuiltVariant& built : variants) {
    entries_.push_back({.built = built, .variant = built.variant});
  }
  best_seconds_ = std::numeric_limits<double>::infinity();
  if (MaybeEnd end = RunFirstHeat()) return *std::move(end);
  if (MaybeEnd end = RunFinal()) return *std::move(end);
  const Entry& best = entries_[Ranking().front()];
  // Without a time there is no deadline left; the default variant is as good as any.
  if (best.variant.has_failure()) return entries_.front().variant.failure();
  return Finish();
}

absl::Duration Sweep::TimeLeft() const { return options_.deadline - absl::Now(); }

MaybeEnd Sweep::RunFirstHeat() {
  for (Entry& entry : entries_) {
    if (TimeLeft() <= absl::ZeroDuration()) break;
    if (MaybeEnd end = Screen(entry)) return end;
  }
  return std::nullopt;
}

MaybeEnd Sweep::RunFinal() {
  // Of those with right results.
  double best_seconds = std::numeric_limits<double>::infinity();
  for (size_t count = 0; count < kFinalists && TimeLeft() > absl::ZeroDuration();) {
    const std::vector<size_t> ranking = Ranking();
    const auto next = std::find_if(ranking.begin(), ranking.end(), [&](size_t index) {
      return !entries_[index].is_final && entries_[index].variant.has_median_seconds();
    });
    if (next == ranking.end()) break;
    Entry& entry = entries_[*next];
    if (entry.variant.median_seconds() > kHopelessRatio * best_seconds) break;
    entry.is_final = true;
    if (MaybeEnd end = Verify(entry)) return end;
    if (entry.variant.has_failure()) continue;
    if (MaybeEnd end = Time(entry, kFinalSamples)) return end;
    if (entry.variant.has_median_seconds()) {
      best_seconds = std::min(best_seconds, entry.variant.median_seconds());
    }
    ++count;
  }
  return std::nullopt;
}

// Finalists come first: the times of the first heat are not as good as theirs,
// and have not been earned with right results.
std::vector<size_t> Sweep::Ranking() const {
  std::vector<size_t> ranking(entries_.size());
  std::iota(ranking.begin(), ranking.end(), 0);
  auto rank = [&](size_t index) {
    const Entry& entry = entries_[index];
    const bool has_time = entry.variant.has_median_seconds();
    return std::make_tuple(!has_time, !entry.is_final, entry.variant.median_seconds());
  };
  std::stable_sort(ranking.begin(), ranking.end(),
                   [&](size_t a, size_t b) { return rank(a) < rank(b); });
  return ranking;
}

Sweep::Outcome Sweep::Finish() {
  const std::vector<size_t> ranking = Ranking();
  Outcome outcome{.best = ranking.front()};
  for (const size_t index : ranking) {
    outcome.variants.push_back(std::move(entries_[index].variant));
  }
  return outcome;
}

MaybeEnd Sweep::Screen(Entry& entry) {
  const auto load = LoadRequestOf(entry.built, options_.text, options_.allowed_calls);
  if (auto failure = FailureOf(runner_.Call(load, TimeLeft()), v1::STAGE_TUNE)) {
    return TakeDown(*std::move(failure), entry);
  }
  auto executed = verifier_.ExecuteAgain(TimeLeft());
  if (auto* failure = std::get_if<v1::Failure>(&executed)) {
    return TakeDown(std::move(*failure), entry);
  }
  const double seconds = std::get<double>(executed);
  if (seconds > kHopelessRatio * best_seconds_) {
    entry.variant.set_median_seconds(seconds);
    return std::nullopt;
  }
  return Time(entry, kScreenSamples);
}

MaybeEnd Sweep::Verify(Entry& entry) {
  const auto load = LoadRequestOf(entry.built, options_.text, options_.allowed_calls);
  std::optional<v1::Failure> failure = FailureOf(runner_.Call(load, TimeLeft()), v1::STAGE_TUNE);
  if (!failure) failure = verifier_.VerifyAgain(TimeLeft()).failure;
  if (const auto& trouble = verifier_.trouble()) return WorkerTrouble(*trouble);
  if (failure) return TakeDown(*std::move(failure), entry);
  return std::nullopt;
}

MaybeEnd Sweep::Time(Entry& entry, int samples) {
  pipe::v1::RunnerRequest time;
  time.mutable_time()->set_samples(samples);
  time.mutable_time()->set_is_cold(options_.is_cold);
  const auto reply = runner_.Call(time, TimeLeft());
  if (auto failure = FailureOf(reply, v1::STAGE_TUNE)) return TakeDown(*std::move(failure), entry);
  const auto& taken = reply.response.timed().samples_seconds();
  // All samples may have been dropped, on a device that changes its clock.
  if (taken.empty()) return std::nullopt;
  const double seconds = Median({taken.data(), static_cast<size_t>(taken.size())});
  entry.variant.set_median_seconds(seconds);
  best_seconds_ = std::min(best_seconds_, seconds);
  return std::nullopt;
}

MaybeEnd Sweep::TakeDown(v1::Failure failure, Entry& entry) {
  if (IsBlameless(failure)) return failure;
  entry.variant.clear_median_seconds();
  *entry.variant.mutable_failure() = std::move(failure);
  return std::nullopt;
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/sweep.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "worker/measure/statistics.h"

namespace mtmc::worker {
namespace {

// Samples of one variant in a sweep: the median of five separates variants that
// differ by a few percent, which is all that screening must do.
constexpr int kScreenSamples = 5;

// Nobody's fault: the process is gone or the device fails its canary.
bool IsBlameless(const v1::Failure& failure) {
  return failure.kind() == v1::Failure::KIND_UNSPECIFIED;
}

}  // namespace

v1::RunnerRequest LoadRequestOf(const BuiltVariant& variant, const std::string& text,
                                const std::vector<std::string>& allowed_calls) {
  v1::RunnerRequest request;
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
  std::vector<v1::Variant> screened;
  for (const BuiltVariant& built : variants) screened.push_back(built.variant);
  for (size_t i = 0; i < variants.size() && absl::Now() < options_.deadline; ++i) {
    if (MaybeEnd end = Screen(variants[i], i == 0, screened[i])) return *std::move(end);
  }
  std::vector<size_t> ranking(variants.size());
  std::iota(ranking.begin(), ranking.end(), 0);
  std::stable_sort(ranking.begin(), ranking.end(), [&](size_t a, size_t b) {
    if (screened[a].has_median_seconds() != screened[b].has_median_seconds()) {
      return screened[a].has_median_seconds();
    }
    return screened[a].median_seconds() < screened[b].median_seconds();
  });
  if (!screened[ranking.front()].has_median_seconds()) return screened.front().failure();
  Outcome outcome{.best = ranking.front(), .kernel_seconds = kernel_seconds_};
  for (const size_t index : ranking) outcome.variants.push_back(std::move(screened[index]));
  return outcome;
}

// Absent unless the evaluation is over; a variant's own failure is written into it.
MaybeEnd Sweep::Screen(const BuiltVariant& built, bool is_loaded, v1::Variant& variant) {
  const absl::Duration timeout = options_.deadline - absl::Now();
  std::optional<v1::Failure> failure;
  if (!is_loaded) {
    const auto load = LoadRequestOf(built, options_.text, options_.allowed_calls);
    failure = FailureOf(runner_.Call(load, timeout), v1::STAGE_TUNE);
    if (!failure) failure = verifier_.VerifyAgain(timeout).failure;
    if (const auto& trouble = verifier_.trouble()) return WorkerTrouble(*trouble);
  }
  v1::RunnerRequest time;
  time.mutable_time()->set_samples(kScreenSamples);
  time.mutable_time()->set_warmups(1);
  time.mutable_time()->set_is_cold(options_.is_cold);
  if (!failure) {
    const auto reply = runner_.Call(time, timeout);
    failure = FailureOf(reply, v1::STAGE_TUNE);
    const auto& samples = reply.response.timed().samples_seconds();
    if (!failure && !samples.empty()) {
      variant.set_median_seconds(Median({samples.data(), static_cast<size_t>(samples.size())}));
      kernel_seconds_ += std::accumulate(samples.begin(), samples.end(), 0.0);
    }
  }
  if (failure && IsBlameless(*failure)) return *std::move(failure);
  if (failure) *variant.mutable_failure() = *std::move(failure);
  return std::nullopt;
}

}  // namespace mtmc::worker

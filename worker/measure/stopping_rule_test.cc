// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/stopping_rule.h"

#include <catch2/catch.hpp>
#include <vector>

namespace mtmc::worker {
namespace {

using Reason = StoppingRule::Reason;

std::vector<double> Alternating(int count, double noise) {
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) samples.push_back(1 + (i % 2 == 0 ? noise : -noise));
  return samples;
}

TEST_CASE("NoiseStoppingRule stops when noise is small after the fewest samples", "[measure]") {
  const NoiseStoppingRule rule({.min_samples = 20, .max_error_ratio = 0.005});

  CHECK(rule.Decide(Alternating(19, 0.0001), absl::Seconds(1)) == Reason::kGoOn);
  CHECK(rule.Decide(Alternating(20, 0.0001), absl::Seconds(1)) == Reason::kNoise);
}

TEST_CASE("NoiseStoppingRule goes on while noise is large", "[measure]") {
  const NoiseStoppingRule rule({.min_samples = 20, .max_samples = 100, .max_error_ratio = 0.005});

  CHECK(rule.Decide(Alternating(50, 0.2), absl::Seconds(1)) == Reason::kGoOn);
  CHECK(rule.Decide(Alternating(100, 0.2), absl::Seconds(1)) == Reason::kSamples);
}

TEST_CASE("NoiseStoppingRule gives up on time only with at least one sample", "[measure]") {
  const NoiseStoppingRule rule({.max_time = absl::Seconds(2)});

  CHECK(rule.Decide({}, absl::Seconds(10)) == Reason::kGoOn);
  CHECK(rule.Decide(Alternating(1, 0), absl::Seconds(10)) == Reason::kTime);
}

}  // namespace
}  // namespace mtmc::worker

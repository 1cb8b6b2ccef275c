// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/stopping_rule.h"

#include <catch2/catch.hpp>

namespace mtmc::worker {
namespace {

using Reason = StoppingRule::Reason;

TEST_CASE("NoiseStoppingRule stops when noise is small after the fewest samples", "[measure]") {
  const NoiseStoppingRule rule({.min_samples = 20, .min_turns = 5, .max_error_ratio = 0.005});

  CHECK(rule.Decide({.samples = 19, .turns = 5, .error_ratio = 1e-4}) == Reason::kGoOn);
  CHECK(rule.Decide({.samples = 20, .turns = 4, .error_ratio = 1e-4}) == Reason::kGoOn);
  CHECK(rule.Decide({.samples = 20, .turns = 5, .error_ratio = 1e-4}) == Reason::kNoise);
}

TEST_CASE("NoiseStoppingRule needs fewer samples of what takes long", "[measure]") {
  const NoiseStoppingRule rule({.min_turns = 5});

  CHECK(rule.Decide({.samples = 9, .turns = 9, .elapsed = absl::Milliseconds(20)}) ==
        Reason::kGoOn);
  CHECK(rule.Decide({.samples = 5, .turns = 9, .elapsed = absl::Milliseconds(300)}) ==
        Reason::kGoOn);
  CHECK(rule.Decide({.samples = 9, .turns = 9, .elapsed = absl::Milliseconds(300)}) ==
        Reason::kNoise);
}

TEST_CASE("NoiseStoppingRule goes on while an interval is wide", "[measure]") {
  const NoiseStoppingRule rule({.max_samples = 100, .max_interval_ratio = 0.01});

  CHECK(rule.Decide({.samples = 99, .turns = 50, .interval_ratio = 0.02}) == Reason::kGoOn);
  CHECK(rule.Decide({.samples = 100, .turns = 50, .interval_ratio = 0.02}) == Reason::kSamples);
}

TEST_CASE("NoiseStoppingRule gives up on time only with at least one sample", "[measure]") {
  const NoiseStoppingRule rule({.max_time = absl::Seconds(2)});

  CHECK(rule.Decide({.elapsed = absl::Seconds(10)}) == Reason::kGoOn);
  CHECK(rule.Decide({.samples = 1, .elapsed = absl::Seconds(10)}) == Reason::kTime);
}

}  // namespace
}  // namespace mtmc::worker

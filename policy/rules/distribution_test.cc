// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/distribution.h"

#include <catch2/catch.hpp>
#include <numeric>

namespace mtmc::policy {
namespace {

using Catch::Matchers::WithinAbs;

TEST_CASE("Softmax sums to one for scores of any size", "[policy]") {
  const std::vector<double> scores = {-1000.0, 0.0, 1000.0, 999.0};

  const std::vector<double> probabilities = Softmax(scores, 1.0);

  CHECK_THAT(std::accumulate(probabilities.begin(), probabilities.end(), 0.0),
             WithinAbs(1.0, 1e-12));
  CHECK_THAT(probabilities[2], WithinAbs(0.7310585786, 1e-9));
}

TEST_CASE("Softmax takes temperature 0 as 1", "[policy]") {
  const std::vector<double> scores = {0.5, 1.5};

  CHECK(Softmax(scores, 0) == Softmax(scores, 1));
}

TEST_CASE("Softmax below the greedy temperature gives the best action everything", "[policy]") {
  const std::vector<double> scores = {1.0, 1.001, 1.0};

  CHECK(Softmax(scores, 0.001) == std::vector<double>{0, 1, 0});
}

TEST_CASE("Draw repeats with its seed", "[policy]") {
  const std::vector<double> probabilities = {0.25, 0.25, 0.5};

  for (int64_t seed = -5; seed < 5; ++seed) {
    CHECK(Draw(probabilities, seed) == Draw(probabilities, seed));
  }
}

TEST_CASE("Draw follows the probabilities over many seeds", "[policy]") {
  const std::vector<double> probabilities = {0.1, 0.0, 0.6, 0.3};
  constexpr int kDraws = 20000;
  std::vector<int> counts(probabilities.size(), 0);

  for (int64_t seed = 0; seed < kDraws; ++seed) ++counts[Draw(probabilities, seed)];

  CHECK(counts[1] == 0);
  // Three standard deviations of a binomial are at most 0.011 here.
  for (size_t i = 0; i < counts.size(); ++i) {
    CHECK_THAT(counts[i] / static_cast<double>(kDraws), WithinAbs(probabilities[i], 0.011));
  }
}

TEST_CASE("Draw never returns an impossible last action", "[policy]") {
  const std::vector<double> probabilities = {0.5, 0.4999999, 0.0};

  for (int64_t seed = 0; seed < 2000; ++seed) CHECK(Draw(probabilities, seed) < 2);
}

}  // namespace
}  // namespace mtmc::policy

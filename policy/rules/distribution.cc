// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/distribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mtmc::policy {
namespace {

// One step of SplitMix64, and its upper 53 bits as a number in [0, 1). The
// standard library's distributions differ between implementations; this does
// not, and a decision must be repeatable from its recorded seed.
double UniformFromSeed(int64_t seed) {
  uint64_t z = static_cast<uint64_t>(seed) + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1.0p-53;
}

}  // namespace

std::vector<double> Softmax(std::span<const double> scores, double temperature) {
  const auto best = std::max_element(scores.begin(), scores.end());
  std::vector<double> probabilities(scores.size(), 0.0);
  if (temperature == 0) temperature = 1;
  if (temperature < kGreedyTemperature) {
    probabilities[static_cast<size_t>(best - scores.begin())] = 1.0;
    return probabilities;
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    probabilities[i] = std::exp((scores[i] - *best) / temperature);
  }
  const double sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

size_t Draw(std::span<const double> probabilities, int64_t seed) {
  const double point = UniformFromSeed(seed);
  double cumulative = 0;
  size_t last_possible = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] <= 0) continue;
    cumulative += probabilities[i];
    last_possible = i;
    if (point < cumulative) return i;
  }
  // Rounding may leave the sum a little under 1.
  return last_possible;
}

}  // namespace mtmc::policy

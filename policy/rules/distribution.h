// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mtmc::policy {

// A distribution over the actions of one query, parallel to them. A value.
struct Distribution {
  // Score of each action before temperature: log-preferences of a rule table,
  // normalised log-probabilities of a language model. Always finite.
  std::vector<double> scores;
  // Probability of each action; they sum to 1.
  std::vector<double> probabilities;
  // Tokens of each action's text; empty for a policy without tokens.
  std::vector<int> token_counts;
};

// Below this temperature the best action gets all the probability: the
// quotient of two scores that far apart has left the range of a double.
inline constexpr double kGreedyTemperature = 0.01;

// Softmax of `scores / temperature`. A temperature of 0 means 1, as on the
// wire. Under kGreedyTemperature the whole mass is on the first largest score.
// REQUIRES: scores is not empty and finite, temperature is not negative.
std::vector<double> Softmax(std::span<const double> scores, double temperature);

// Draws an index with the given probabilities. The same seed and probabilities
// give the same index on every machine.
// REQUIRES: probabilities is not empty, none is negative, they sum to about 1.
size_t Draw(std::span<const double> probabilities, int64_t seed);

}  // namespace mtmc::policy

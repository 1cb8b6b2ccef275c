// SPDX-License-Identifier: Apache-2.0
#include "policy/model/action_scorer.h"

#include <algorithm>
#include <numeric>
#include <sstream>

namespace mtmc::policy {

double ActionScore::Sum() const {
  return std::accumulate(token_log_probabilities.begin(), token_log_probabilities.end(), 0.0);
}

double ActionScore::TokenMean() const {
  return Sum() / static_cast<double>(std::max<size_t>(1, token_log_probabilities.size()));
}

double ActionScore::WordMean(const std::string& action) const {
  std::istringstream words(action);
  std::string word;
  int count = 0;
  while (words >> word) ++count;
  return Sum() / std::max(1, count);
}

}  // namespace mtmc::policy

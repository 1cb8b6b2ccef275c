// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "policy/model/action_scorer.h"

namespace mtmc::policy {

// A scorer without a model, for tests: every byte of an action is a token of
// log-probability -1, so the sum of an action is minus its length. A prompt
// longer than `context_bytes` is OUT_OF_RANGE.
class FakeActionScorer final : public ActionScorer {
 public:
  std::vector<Result> Score(std::span<const ScoreRequest> requests) override {
    batch_sizes.push_back(requests.size());
    std::vector<Result> results;
    for (const ScoreRequest& request : requests) {
      prompts.push_back(request.prompt);
      if (request.prompt.size() > context_bytes) {
        results.emplace_back(absl::OutOfRangeError("the prompt is too long"));
        continue;
      }
      std::vector<ActionScore> scores;
      for (const std::string& action : request.actions) {
        scores.push_back({std::vector<double>(action.size(), -1.0)});
      }
      results.emplace_back(std::move(scores));
    }
    return results;
  }

  std::string model_digest() const override { return std::string(64, 'f'); }

  std::string description() const override { return "fake"; }

  size_t context_bytes = 1 << 20;
  // Requests of each call so far, and their prompts in order.
  std::vector<size_t> batch_sizes;
  std::vector<std::string> prompts;
};

}  // namespace mtmc::policy

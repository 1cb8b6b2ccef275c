// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mtmc::policy {

// A prompt and the texts that may follow it. The sequence that is scored is
//
//   prefix tokens  +  Encode(prompt)  +  Encode(" " + action)
//
// with prompt and action tokenized apart, so that the tokens of the action are
// known exactly. The prompt must end so that no token crosses the seam: with a
// character that is neither white space nor part of a word that goes on.
struct ScoreRequest {
  std::string prompt;
  // At least one; none empty.
  std::vector<std::string> actions;
};

// What a model says about one action. A value.
struct ActionScore {
  // Natural log-probability of each token of the action, given the prompt and
  // the tokens before it.
  std::vector<double> token_log_probabilities;

  // Joint log-probability.
  double Sum() const;
  // Sum over the number of tokens.
  double TokenMean() const;
  // Sum over the number of white-space separated words of `action`.
  double WordMean(const std::string& action) const;
};

// Scores actions with a causal language model. A service; thread-compatible:
// one call at a time. Blocks for one forward pass over all requests.
class ActionScorer {
 public:
  // Scores of all actions of one request, parallel to them, or why there are
  // none: INVALID_ARGUMENT when a token would cross the seam, OUT_OF_RANGE when
  // a sequence is longer than the model's context.
  using Result = absl::StatusOr<std::vector<ActionScore>>;

  virtual ~ActionScorer() = default;

  // One result per request, parallel to them. A bad request does not harm the
  // others of its batch.
  virtual std::vector<Result> Score(std::span<const ScoreRequest> requests) = 0;

  // SHA-256 over configuration, tokenizer and weights, in hexadecimal.
  virtual std::string model_digest() const = 0;

  // Architecture and size in one line, for people.
  virtual std::string description() const = 0;
};

}  // namespace mtmc::policy

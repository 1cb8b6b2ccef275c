// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "policy/rules/distribution.h"
#include "policy/rules/search_state.h"

namespace mtmc::policy {

// How the log-probability of an action's tokens becomes its score (TWOSOME,
// arXiv 2401.14151). A policy without tokens ignores it.
enum class ScoreNormalization { kSum, kTokenMean, kWordMean };

// One question to a policy. A value.
struct Query {
  SearchState search_state;
  // Every legal action, in any order; never empty.
  std::vector<Action> actions;
  // Softmax temperature; 0 means 1.
  double temperature = 0;
  ScoreNormalization normalization = ScoreNormalization::kSum;
  // After this nobody waits for the answer.
  absl::Time deadline = absl::InfiniteFuture();
};

// Maps a search state to a distribution over its legal actions, nothing else.
// A service.
//
// Implementations MUST
//  1. call `done` exactly once, on any thread, possibly before Decide returns;
//  2. give every action a finite score that does not depend on the order of
//     the actions;
//  3. be deterministic: equal queries have equal distributions.
//
// Thread-safe. Decide never blocks on another caller.
//
// Failure: RESOURCE_EXHAUSTED when too many queries wait, DEADLINE_EXCEEDED
// when the deadline passed first, OUT_OF_RANGE when the state does not fit the
// policy's context. On each of them a caller goes on with the rules.
class Policy {
 public:
  using Done = std::function<void(absl::StatusOr<Distribution>)>;

  virtual ~Policy() = default;

  virtual void Decide(Query query, Done done) = 0;

  // Name to ask for, such as `rules`.
  virtual std::string name() const = 0;

  // SHA-256 of the weights in hexadecimal; empty without weights.
  virtual std::string model_digest() const = 0;

  // Architecture and size in one line, for people.
  virtual std::string description() const = 0;
};

}  // namespace mtmc::policy

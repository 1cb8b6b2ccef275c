// SPDX-License-Identifier: Apache-2.0
#include "policy/service/lm_policy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "policy/service/prompt.h"

namespace mtmc::policy {
namespace {

// Below this the prompt says too little to decide by.
constexpr size_t kShortestPromptBytes = 1500;

double Normalize(const ActionScore& score, const Action& action, ScoreNormalization normalization) {
  switch (normalization) {
    case ScoreNormalization::kSum:
      break;
    case ScoreNormalization::kTokenMean:
      return score.TokenMean();
    case ScoreNormalization::kWordMean:
      return score.WordMean(action.text);
  }
  return score.Sum();
}

Distribution MakeDistribution(const Query& query, const std::vector<ActionScore>& scores) {
  Distribution distribution;
  for (size_t i = 0; i < scores.size(); ++i) {
    distribution.scores.push_back(Normalize(scores[i], query.actions[i], query.normalization));
    distribution.token_counts.push_back(static_cast<int>(scores[i].token_log_probabilities.size()));
  }
  distribution.probabilities = Softmax(distribution.scores, query.temperature);
  return distribution;
}

}  // namespace

// One query on its way. Shared by the caller's thread and the batcher's, one
// after the other; the last of its callbacks drops it.
struct LmPolicy::Attempt {
  Query query;
  Done done;
  size_t prompt_bytes = kPromptBytes;
};

LmPolicy::LmPolicy(std::unique_ptr<ActionScorer> scorer, const Batcher::Options& options)
    : scorer_(std::move(scorer)),
      model_digest_(scorer_->model_digest()),
      description_(scorer_->description()),
      batcher_(*scorer_, options) {}

LmPolicy::~LmPolicy() = default;

void LmPolicy::Decide(Query query, Done done) {
  for (const Action& action : query.actions) {
    if (action.text.empty()) {
      done(absl::InvalidArgumentError("an action has no text, which is what the model scores"));
      return;
    }
  }
  auto attempt = std::make_shared<Attempt>();
  attempt->query = std::move(query);
  attempt->done = std::move(done);
  Submit(std::move(attempt));
}

void LmPolicy::Submit(std::shared_ptr<Attempt> attempt) {
  ScoreRequest request;
  request.prompt =
      MakePrompt(attempt->query.search_state, attempt->query.actions, attempt->prompt_bytes);
  for (const Action& action : attempt->query.actions) request.actions.push_back(action.text);
  const absl::Status submitted = batcher_.Submit(
      std::move(request), attempt->query.deadline, [this, attempt](ActionScorer::Result result) {
        if (result.ok()) {
          attempt->done(MakeDistribution(attempt->query, *result));
          return;
        }
        const bool is_too_long = result.status().code() == absl::StatusCode::kOutOfRange;
        if (is_too_long && attempt->prompt_bytes >= 2 * kShortestPromptBytes) {
          attempt->prompt_bytes /= 2;
          Submit(attempt);
          return;
        }
        attempt->done(result.status());
      });
  if (!submitted.ok()) attempt->done(submitted);
}

}  // namespace mtmc::policy

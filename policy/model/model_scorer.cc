// SPDX-License-Identifier: Apache-2.0
#include "policy/model/model_scorer.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/annotate.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "policy/model/tokenizer_json.h"

namespace mtmc::policy {
namespace {

// A request as tokens.
using Tree = DecoderModel::Tree;

class ModelScorer final : public ActionScorer {
 public:
  ModelScorer(std::unique_ptr<Tokenizer> tokenizer, std::unique_ptr<DecoderModel> model,
              const ModelConfig& config, std::string digest)
      : tokenizer_(std::move(tokenizer)),
        model_(std::move(model)),
        config_(config),
        digest_(std::move(digest)) {}

  std::vector<Result> Score(std::span<const ScoreRequest> requests) override;

  std::string model_digest() const override { return digest_; }

  std::string description() const override {
    return absl::StrFormat("%s, %.1f million weights, %d layers, context %d", config_.family,
                           static_cast<double>(model_->parameters()) / 1e6, config_.layers,
                           config_.max_positions);
  }

 private:
  absl::StatusOr<Tree> Tokenize(const ScoreRequest& request) const;
  absl::Status CheckSeam(const std::string& prompt, const std::string& action) const;

  const std::unique_ptr<Tokenizer> tokenizer_;
  const std::unique_ptr<DecoderModel> model_;
  const ModelConfig config_;
  const std::string digest_;
};

// Whether the tokens of the joined text are those of its parts. The last line
// of the prompt stands for all of it: no pre-tokenizer in use looks back over
// a line break into the line before.
absl::Status ModelScorer::CheckSeam(const std::string& prompt, const std::string& action) const {
  const std::string tail = prompt.substr(prompt.rfind('\n') + 1);
  MTMC_ASSIGN_OR_RETURN(std::vector<int32_t> apart, tokenizer_->Encode(tail));
  MTMC_ASSIGN_OR_RETURN(const std::vector<int32_t> after, tokenizer_->Encode(" " + action));
  apart.insert(apart.end(), after.begin(), after.end());
  MTMC_ASSIGN_OR_RETURN(const std::vector<int32_t> joined, tokenizer_->Encode(tail + " " + action));
  if (joined == apart) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a token crosses from the end of the prompt, '",
                                                 tail, "', into the action '", action, "'"));
}

absl::StatusOr<Tree> ModelScorer::Tokenize(const ScoreRequest& request) const {
  Tree tree;
  tree.prompt = tokenizer_->prefix();
  MTMC_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt, tokenizer_->Encode(request.prompt));
  tree.prompt.insert(tree.prompt.end(), prompt.begin(), prompt.end());
  if (tree.prompt.empty()) return absl::InvalidArgumentError("the prompt has no token");
  for (const std::string& action : request.actions) {
    MTMC_RETURN_IF_ERROR(CheckSeam(request.prompt, action));
    MTMC_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, tokenizer_->Encode(" " + action));
    const size_t length = tree.prompt.size() + tokens.size();
    if (length > static_cast<size_t>(config_.max_positions)) {
      return absl::OutOfRangeError(absl::StrCat("prompt and action have ", length,
                                                " tokens, the model's context is ",
                                                config_.max_positions));
    }
    tree.continuations.push_back(std::move(tokens));
  }
  return tree;
}

std::vector<ActionScorer::Result> ModelScorer::Score(std::span<const ScoreRequest> requests) {
  std::vector<Result> results(requests.size(), std::vector<ActionScore>());
  std::vector<Tree> trees;
  std::vector<size_t> request_of_tree;
  for (size_t i = 0; i < requests.size(); ++i) {
    absl::StatusOr<Tree> tree = Tokenize(requests[i]);
    if (!tree.ok()) {
      results[i] = tree.status();
      continue;
    }
    trees.push_back(*std::move(tree));
    request_of_tree.push_back(i);
  }
  absl::StatusOr<std::vector<DecoderModel::TreeScores>> scores = model_->Score(trees);
  for (size_t t = 0; t < trees.size(); ++t) {
    Result& result = results[request_of_tree[t]];
    if (!scores.ok()) {
      result = scores.status();
      continue;
    }
    for (std::vector<double>& tokens : (*scores)[t]) result->push_back({std::move(tokens)});
  }
  return results;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ActionScorer>> LoadModelScorer(
    const std::string& folder, const DecoderModel::Options& options) {
  MTMC_ASSIGN_OR_RETURN(const std::string config_text, base::ReadFile(folder + "/config.json"));
  MTMC_ASSIGN_OR_RETURN(const ModelConfig config, ParseModelConfig(config_text));
  MTMC_ASSIGN_OR_RETURN(const std::string tokenizer_text,
                        base::ReadFile(folder + "/tokenizer.json"));
  MTMC_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, ReadTokenizer(tokenizer_text));
  if (tokenizer->id_bound() > config.vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat("tokenizer.json has ids up to ",
                                                   tokenizer->id_bound() - 1, ", the model has ",
                                                   config.vocab_size, " tokens"));
  }
  MTMC_ASSIGN_OR_RETURN(const WeightFiles weights, WeightFiles::Open(folder));
  MTMC_ASSIGN_OR_RETURN(std::unique_ptr<DecoderModel> model,
                        DecoderModel::Load(config, weights, options));
  base::Sha256Builder digest;
  digest.Append(config_text).Append(tokenizer_text);
  for (const std::string_view contents : weights.contents()) digest.Append(contents);
  auto scorer = std::make_unique<ModelScorer>(std::move(tokenizer), std::move(model), config,
                                              digest.Finish().sha256_hex);
  const ScoreRequest first{.prompt = "Next action:", .actions = {"stop"}};
  MTMC_RETURN_IF_ERROR(scorer->Score(std::span(&first, 1)).front().status());
  return scorer;
}

}  // namespace mtmc::policy

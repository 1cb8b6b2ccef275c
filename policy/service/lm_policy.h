// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "policy/rules/interface.h"
#include "policy/service/batcher.h"

namespace mtmc::policy {

// The policy with a language model: the score of an action is the normalised
// log-probability of its text after the prompt (TWOSOME). A service; callers
// are batched.
class LmPolicy final : public Policy {
 public:
  LmPolicy(std::unique_ptr<ActionScorer> scorer, const Batcher::Options& options);
  ~LmPolicy() override;

  // A prompt that does not fit into the model's context is shortened, to half
  // its length at a time, before it is given up with OUT_OF_RANGE.
  void Decide(Query query, Done done) override;

  std::string name() const override { return "lm"; }

  std::string model_digest() const override { return model_digest_; }

  std::string description() const override { return description_; }

 private:
  struct Attempt;

  void Submit(std::shared_ptr<Attempt> attempt);

  // Constant after construction.
  const std::unique_ptr<ActionScorer> scorer_;
  const std::string model_digest_;
  const std::string description_;
  Batcher batcher_;
};

}  // namespace mtmc::policy

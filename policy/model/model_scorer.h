// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "policy/model/action_scorer.h"
#include "policy/model/decoder_model.h"

namespace mtmc::policy {

// Loads a Hugging Face folder as it is (`config.json`, `tokenizer.json`,
// safetensors) into a scorer. Blocks while it reads every byte, for the digest,
// and scores one short text: the first caller then does not pay for libtorch's
// start, and a model that cannot score at all is refused here. The errors of the
// readers, each with the file concerned.
absl::StatusOr<std::unique_ptr<ActionScorer>> LoadModelScorer(const std::string& folder,
                                                              const DecoderModel::Options& options);

}  // namespace mtmc::policy

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/model/config.h"
#include "policy/model/safetensors.h"

struct MtmcDecoderApi;

namespace mtmc::policy {

// A causal decoder of the Llama or Qwen2 family: RMSNorm, rotary positions,
// grouped-query attention, SwiGLU. It runs in libtorch, which the plug-in
// `mtmc_lm.so` links: a process that never asks for a model starts without it,
// and the library comes from whatever Python environment the host has.
//
// One call scores several *trees*: a prompt and the continuations that may
// follow it. A tree is one forward pass over the prompt and all continuations
// side by side. In each layer the prompt's keys and values are computed once;
// the queries of all its continuations are folded into the rows of one product
// with them, so nothing of the prompt is repeated or copied per continuation.
//
//   layer rows:  prompt 0 | cont 0.0 | cont 0.1 | prompt 1 | cont 1.0 | ...
//                 attends   attends to prompt 0
//                 to itself and to itself
//
// All linear layers run over the rows of all trees at once. Trees do not see
// each other, so a result does not depend on the batch but for rounding.
//
// A service; thread-compatible. Weights are read-only after Load.
class DecoderModel {
 public:
  struct Options {
    // The plug-in.
    std::string plugin_path;
    // Folder with `libtorch_cpu.so`; empty leaves it to the dynamic linker.
    std::string torch_folder;
    // `cpu` or `cuda:N`.
    std::string device = "cpu";
    // Weights and activations in bfloat16 instead of float32; softmax,
    // normalization and log-probabilities stay in float32.
    bool keeps_bfloat16 = false;
  };

  // Token ids of a prompt and of what may follow it. None is empty, and all ids
  // are below the vocabulary size.
  struct Tree {
    std::vector<int32_t> prompt;
    std::vector<std::vector<int32_t>> continuations;
  };

  // Natural log-probability of every token of every continuation of one tree.
  using TreeScores = std::vector<std::vector<double>>;

  // Copies the weights. UNAVAILABLE when plug-in, libtorch or device cannot be
  // used, NOT_FOUND when a tensor is missing, INVALID_ARGUMENT when it has another
  // shape than the configuration says, RESOURCE_EXHAUSTED when memory runs out.
  static absl::StatusOr<std::unique_ptr<DecoderModel>> Load(const ModelConfig& config,
                                                            const WeightFiles& weights,
                                                            const Options& options);
  ~DecoderModel();

  DecoderModel(const DecoderModel&) = delete;
  DecoderModel& operator=(const DecoderModel&) = delete;

  // Scores parallel to the trees. Blocks for one forward pass.
  // REQUIRES: trees as described above, none longer than `max_positions`.
  absl::StatusOr<std::vector<TreeScores>> Score(std::span<const Tree> trees) const;

  // Number of weights.
  int64_t parameters() const;

 private:
  DecoderModel(const MtmcDecoderApi& api, void* model) : api_(api), model_(model) {}

  const MtmcDecoderApi& api_;
  void* const model_;
};

}  // namespace mtmc::policy

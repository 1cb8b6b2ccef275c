// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the plug-in, the only sources that see libtorch. They use nothing
// of ours but the boundary.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "policy/model/decoder_abi.h"

namespace mtmc::policy {

// Tensors of one transformer block. Matrices are [out, in]; a bias may be
// undefined.
struct LayerWeights {
  at::Tensor attention_norm;
  // Rows of queries, keys and values, one below the other.
  at::Tensor query_key_value;
  at::Tensor query_key_value_bias;
  at::Tensor output;
  at::Tensor output_bias;
  at::Tensor mlp_norm;
  // Rows of gate and up, one below the other.
  at::Tensor gate_up;
  at::Tensor gate_up_bias;
  at::Tensor down;
  at::Tensor down_bias;
};

// A loaded decoder. Read-only.
struct DecoderWeights {
  // `rope_frequencies` and `device` of it are gone.
  MtmcDecoderConfig config{};
  at::Tensor embedding;
  std::vector<LayerWeights> layers;
  at::Tensor final_norm;
  at::Tensor head;
  // float32 [head_size / 2].
  at::Tensor rope_frequencies;
  int64_t parameters = 0;
};

// Why a load failed: the numeric value of an absl::StatusCode and a message.
struct LoadError {
  int32_t code = 0;
  std::string message;
};

// Takes every tensor through `lookup`. `error` has a code when it failed; what
// is returned is then of no use. libtorch may throw.
struct LoadResult {
  DecoderWeights weights;
  LoadError error;
};

LoadResult LoadDecoder(const MtmcDecoderConfig& config, MtmcDecoderLookup lookup, void* context);

// Log-probabilities of all continuation tokens, in their order. libtorch may
// throw.
std::vector<double> ScoreTrees(const DecoderWeights& model, const MtmcDecoderTree* trees,
                               size_t count);

}  // namespace mtmc::policy

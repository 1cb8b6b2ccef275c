// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mtmc::policy {

// Rotary position embedding: the base frequencies and how they are stretched
// beyond the trained context.
struct RopeConfig {
  enum class Scaling {
    kNone,
    // Positions divided by `factor`.
    kLinear,
    // Base enlarged beyond the trained length; as long as a sequence fits into
    // `max_position_embeddings`, which this reader enforces, it equals kNone.
    kDynamic,
    // Llama 3.1: long waves divided by `factor`, short ones kept, a blend between.
    kLlama3,
    // YaRN (arXiv 2309.00071).
    kYarn,
  };

  double theta = 10000.0;
  Scaling scaling = Scaling::kNone;
  double factor = 1.0;
  // kLlama3 only.
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  // kLlama3 and kYarn: context length before scaling.
  int64_t original_max_positions = 0;
  // kYarn only.
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  // Multiplies the cosines and sines; 1 unless kYarn.
  double attention_factor = 1.0;
};

// Shape of a causal decoder of the Llama or Qwen2 family, read from the
// `config.json` of a Hugging Face folder. A value; every number is checked, so
// that a product of two of them does not overflow.
struct ModelConfig {
  // `llama` or `qwen2`.
  std::string family;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t layers = 0;
  int64_t attention_heads = 0;
  // Grouped-query attention: heads of keys and values, a divisor of the above.
  int64_t key_value_heads = 0;
  int64_t head_size = 0;
  // Longest sequence.
  int64_t max_positions = 0;
  double rms_norm_epsilon = 1e-6;
  bool ties_word_embeddings = false;
  // Whether the projections have a bias.
  bool has_query_key_value_bias = false;
  bool has_output_bias = false;
  bool has_mlp_bias = false;
  RopeConfig rope;
};

// INVALID_ARGUMENT when the text is not JSON or a number is missing or out of
// range; UNIMPLEMENTED, naming the key, for an architecture or feature that the
// decoder does not have.
absl::StatusOr<ModelConfig> ParseModelConfig(std::string_view json);

// Angular frequency of each pair of dimensions, `head_size / 2` of them, with
// the scaling applied.
std::vector<double> RopeFrequencies(const RopeConfig& rope, int64_t head_size);

}  // namespace mtmc::policy

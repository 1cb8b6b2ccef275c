// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The C boundary between a process of ours and `mtmc_lm.so`, the plug-in that
// links libtorch and nothing of ours. Only plain types cross it: Debian's static
// Abseil cannot be part of a shared object, and a shared one would be a second
// copy. Everything passed is borrowed for the duration of the call; nothing is
// allocated by one side and freed by the other. Thread-compatible.
extern "C" {

// Raised with every change below.
constexpr uint32_t kMtmcDecoderAbiVersion = 2;
// The one symbol of the plug-in, of type `const MtmcDecoderApi* ()`.
#define MTMC_DECODER_ENTRY "mtmc_decoder_api"

// A stored weight; `type` is a mtmc::policy::WeightType.
struct MtmcDecoderTensor {
  int32_t type;
  const int64_t* shape;
  size_t rank;
  const void* data;
  size_t bytes;
};

// Fills `tensor` and returns 1, or returns 0 when there is none of this name.
typedef int32_t (*MtmcDecoderLookup)(void* context, const char* name, MtmcDecoderTensor* tensor);

// Receives why a call failed: an absl::StatusCode and a text ending in 0.
typedef void (*MtmcDecoderReport)(void* context, int32_t code, const char* message);

// mtmc::policy::ModelConfig, with the rotary scaling worked out.
struct MtmcDecoderConfig {
  int64_t vocab_size;
  int64_t hidden_size;
  int64_t intermediate_size;
  int64_t layers;
  int64_t attention_heads;
  int64_t key_value_heads;
  int64_t head_size;
  double rms_norm_epsilon;
  int32_t ties_word_embeddings;
  int32_t has_query_key_value_bias;
  int32_t has_output_bias;
  int32_t has_mlp_bias;
  // `head_size / 2` of them.
  const float* rope_frequencies;
  double rope_attention_factor;
  // `cpu` or `cuda:N`.
  const char* device;
  int32_t keeps_bfloat16;
};

// One prompt with its continuations: `tokens` holds the prompt and then the
// continuations, `lengths` the number of tokens of each continuation, none 0.
struct MtmcDecoderTree {
  const int32_t* tokens;
  size_t prompt_length;
  const size_t* lengths;
  size_t continuations;
};

struct MtmcDecoderApi {
  uint32_t version;
  // A model, or null after `report` was called once. `lookup` is asked for
  // every tensor and not kept.
  void* (*create)(const MtmcDecoderConfig* config, MtmcDecoderLookup lookup, void* lookup_context,
                  MtmcDecoderReport report, void* report_context);
  void (*destroy)(void* model);
  int64_t (*parameters)(const void* model);
  // Writes the log-probability of every continuation token, in the order of the
  // trees' tokens, and returns 1; or returns 0 after `report` was called once.
  int32_t (*score)(const void* model, const MtmcDecoderTree* trees, size_t count,
                   double* log_probabilities, MtmcDecoderReport report, void* report_context);
};

}  // extern "C"

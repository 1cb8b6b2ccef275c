// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <cstring>

#include "policy/model/decoder_weights.h"

namespace mtmc::policy {
namespace {

// Numeric values of absl::StatusCode.
constexpr int32_t kInvalidArgument = 3;
constexpr int32_t kNotFound = 5;
constexpr int32_t kUnavailable = 14;

// In the order of WeightType.
constexpr at::ScalarType kScalarTypes[] = {at::kFloat, at::kHalf, at::kBFloat16};

std::string ShapeText(at::IntArrayRef shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : ",") + std::to_string(extent);
  return "[" + text + "]";
}

// Takes tensors by name, checks their shape, and moves them to the device. The
// first error is kept, and everything after it is an undefined tensor.
class Loader {
 public:
  Loader(MtmcDecoderLookup lookup, void* context, at::TensorOptions target)
      : lookup_(lookup), context_(context), target_(target) {}

  const LoadError& error() const { return error_; }

  int64_t parameters() const { return parameters_; }

  at::Tensor Take(const std::string& name, const std::vector<int64_t>& shape) {
    if (error_.code != 0) return {};
    MtmcDecoderTensor stored{};
    if (lookup_(context_, name.c_str(), &stored) == 0) {
      return Fail(kNotFound, "the weights have no F32, F16 or BF16 tensor '" + name + "'");
    }
    const at::IntArrayRef stored_shape(stored.shape, stored.rank);
    if (stored_shape != at::IntArrayRef(shape)) {
      return Fail(kInvalidArgument, "tensor '" + name + "' has shape " + ShapeText(stored_shape) +
                                        ", the configuration needs " + ShapeText(shape));
    }
    at::Tensor tensor = at::empty(shape, at::TensorOptions(kScalarTypes[stored.type]));
    std::memcpy(tensor.data_ptr(), stored.data, stored.bytes);
    parameters_ += tensor.numel();
    return tensor.to(target_);
  }

  // Matrices of one input width, one below the other.
  at::Tensor Stack(const std::string& prefix, const std::vector<std::string>& names,
                   const std::vector<int64_t>& rows, int64_t width) {
    std::vector<at::Tensor> parts;
    for (size_t i = 0; i < names.size(); ++i) {
      parts.push_back(Take(prefix + names[i] + ".weight", {rows[i], width}));
    }
    return Join(parts);
  }

  // As Stack for their biases; undefined when they have none.
  at::Tensor StackBias(bool is_there, const std::string& prefix,
                       const std::vector<std::string>& names, const std::vector<int64_t>& rows) {
    if (!is_there) return {};
    std::vector<at::Tensor> parts;
    for (size_t i = 0; i < names.size(); ++i) {
      parts.push_back(Take(prefix + names[i] + ".bias", {rows[i]}));
    }
    return Join(parts);
  }

 private:
  at::Tensor Join(const std::vector<at::Tensor>& parts) const {
    if (error_.code != 0) return {};
    return parts.size() == 1 ? parts.front() : at::cat(parts);
  }

  at::Tensor Fail(int32_t code, std::string message) {
    error_ = {.code = code, .message = std::move(message)};
    return {};
  }

  const MtmcDecoderLookup lookup_;
  void* const context_;
  const at::TensorOptions target_;
  LoadError error_;
  int64_t parameters_ = 0;
};

LayerWeights LoadLayer(Loader& loader, const MtmcDecoderConfig& config, int64_t index) {
  const std::string layer = "model.layers." + std::to_string(index) + ".";
  const std::string attention = layer + "self_attn.";
  const std::string mlp = layer + "mlp.";
  const int64_t hidden = config.hidden_size;
  const int64_t inner = config.intermediate_size;
  const int64_t query_rows = config.attention_heads * config.head_size;
  const int64_t key_rows = config.key_value_heads * config.head_size;
  const std::vector<std::string> qkv = {"q_proj", "k_proj", "v_proj"};
  const std::vector<int64_t> qkv_rows = {query_rows, key_rows, key_rows};
  const std::vector<std::string> gate_up = {"gate_proj", "up_proj"};
  const bool has_mlp_bias = config.has_mlp_bias != 0;
  LayerWeights weights;
  weights.attention_norm = loader.Take(layer + "input_layernorm.weight", {hidden});
  weights.query_key_value = loader.Stack(attention, qkv, qkv_rows, hidden);
  weights.query_key_value_bias =
      loader.StackBias(config.has_query_key_value_bias != 0, attention, qkv, qkv_rows);
  weights.output = loader.Stack(attention, {"o_proj"}, {hidden}, query_rows);
  weights.output_bias =
      loader.StackBias(config.has_output_bias != 0, attention, {"o_proj"}, {hidden});
  weights.mlp_norm = loader.Take(layer + "post_attention_layernorm.weight", {hidden});
  weights.gate_up = loader.Stack(mlp, gate_up, {inner, inner}, hidden);
  weights.gate_up_bias = loader.StackBias(has_mlp_bias, mlp, gate_up, {inner, inner});
  weights.down = loader.Stack(mlp, {"down_proj"}, {hidden}, inner);
  weights.down_bias = loader.StackBias(has_mlp_bias, mlp, {"down_proj"}, {hidden});
  return weights;
}

at::Tensor RopeTensor(const MtmcDecoderConfig& config, const at::Device& device) {
  const int64_t pairs = config.head_size / 2;
  at::Tensor tensor = at::empty({pairs}, at::TensorOptions(at::kFloat));
  std::memcpy(tensor.data_ptr(), config.rope_frequencies,
              static_cast<size_t>(pairs) * sizeof(float));
  return tensor.to(device);
}

// Empty when the device works: the first allocation is what fails when the
// device or its backend is not there.
std::string TryDevice(const std::string& name) {
  try {
    at::zeros({1}, at::TensorOptions(at::Device(name)));
    return "";
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return "device '" + name + "' cannot be used: " + text.substr(0, text.find('\n'));
  }
}

}  // namespace

LoadResult LoadDecoder(const MtmcDecoderConfig& config, MtmcDecoderLookup lookup, void* context) {
  LoadResult result;
  if (std::string problem = TryDevice(config.device); !problem.empty()) {
    result.error = {.code = kUnavailable, .message = std::move(problem)};
    return result;
  }
  const c10::InferenceMode guard;
  const at::Device device(config.device);
  const at::ScalarType type = config.keeps_bfloat16 != 0 ? at::kBFloat16 : at::kFloat;
  Loader loader(lookup, context, at::TensorOptions(device).dtype(type));
  DecoderWeights& weights = result.weights;
  weights.config = config;
  weights.config.device = nullptr;
  weights.config.rope_frequencies = nullptr;
  const int64_t hidden = config.hidden_size;
  weights.embedding = loader.Take("model.embed_tokens.weight", {config.vocab_size, hidden});
  for (int64_t i = 0; i < config.layers && loader.error().code == 0; ++i) {
    weights.layers.push_back(LoadLayer(loader, config, i));
  }
  weights.final_norm = loader.Take("model.norm.weight", {hidden});
  weights.head = config.ties_word_embeddings != 0
                     ? weights.embedding
                     : loader.Take("lm_head.weight", {config.vocab_size, hidden});
  weights.rope_frequencies = RopeTensor(config, device);
  weights.parameters = loader.parameters();
  result.error = loader.error();
  return result;
}

}  // namespace mtmc::policy

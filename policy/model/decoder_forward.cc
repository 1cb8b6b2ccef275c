// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/triu.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "policy/model/decoder_weights.h"

namespace mtmc::policy {
namespace {

// Most attention scores of one product, 256 MB in float32. A larger tree is
// worked on some continuations at a time.
constexpr int64_t kMaxScores = int64_t{1} << 26;
// Rows of logits at a time: 256 x 128,000 tokens are 131 MB in float32.
constexpr int64_t kLogitRows = 256;

// Where one tree lies among the rows.
struct Span {
  int64_t first_row = 0;
  int64_t prompt = 0;
  // Continuations, each padded to `length` input tokens: its last token is
  // predicted, never read.
  int64_t continuations = 0;
  int64_t length = 0;

  int64_t first_continuation_row() const { return first_row + prompt; }

  int64_t rows() const { return prompt + continuations * length; }
};

// One token to be scored: the row that predicts it.
struct Target {
  int64_t row = 0;
  int64_t token = 0;
};

// Rows of a batch: token, position, and the trees' places.
struct Batch {
  std::vector<int64_t> tokens;
  std::vector<int64_t> positions;
  std::vector<Span> spans;
  // In the order of trees, continuations and tokens.
  std::vector<Target> targets;
};

void AddTree(const MtmcDecoderTree& tree, Batch& batch) {
  Span span;
  span.first_row = static_cast<int64_t>(batch.tokens.size());
  span.prompt = static_cast<int64_t>(tree.prompt_length);
  span.continuations = static_cast<int64_t>(tree.continuations);
  for (size_t i = 0; i < tree.continuations; ++i) {
    span.length = std::max(span.length, static_cast<int64_t>(tree.lengths[i]) - 1);
  }
  for (int64_t i = 0; i < span.prompt; ++i) {
    batch.tokens.push_back(tree.tokens[i]);
    batch.positions.push_back(i);
  }
  const int32_t* continuation = tree.tokens + tree.prompt_length;
  int64_t row = span.first_continuation_row();
  for (size_t c = 0; c < tree.continuations; continuation += tree.lengths[c++]) {
    const auto inputs = static_cast<int64_t>(tree.lengths[c]) - 1;
    batch.targets.push_back({.row = span.first_continuation_row() - 1, .token = continuation[0]});
    for (int64_t i = 0; i < span.length; ++i, ++row) {
      // Padding comes last, where the causal mask hides it from every token.
      batch.tokens.push_back(i < inputs ? continuation[i] : 0);
      batch.positions.push_back(span.prompt + i);
      if (i < inputs) batch.targets.push_back({.row = row, .token = continuation[i + 1]});
    }
  }
  batch.spans.push_back(span);
}

at::Tensor ToTensor(const std::vector<int64_t>& values, const at::Device& device) {
  at::Tensor tensor =
      at::empty({static_cast<int64_t>(values.size())}, at::TensorOptions(at::kLong));
  std::memcpy(tensor.data_ptr(), values.data(), values.size() * sizeof(int64_t));
  return tensor.to(device);
}

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor scale = wide.square().mean(-1, /*keepdim=*/true).add(epsilon).rsqrt();
  return weight.mul(wide.mul(scale).to(x.scalar_type()));
}

// Rotates pairs (i, i + half) of the last dimension. x: [rows, heads, size],
// cosine and sine: [rows, 1, size / 2].
at::Tensor Rotate(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
  const int64_t half = x.size(-1) / 2;
  const at::Tensor first = x.narrow(-1, 0, half);
  const at::Tensor second = x.narrow(-1, half, half);
  return at::cat({first * cosine - second * sine, second * cosine + first * sine}, -1);
}

// Causal attention of the prompt to itself.
// query: [prompt, heads, size], key and value: [prompt, kv_heads, size].
at::Tensor AttendPrompt(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const int64_t group = query.size(1) / key.size(1);
  // The fused kernels want one key head per query head; a copy of one layer of
  // one prompt is small beside its activations.
  const auto repeat = [&](const at::Tensor& x) {
    return x.repeat_interleave(group, 1).transpose(0, 1).unsqueeze(0);
  };
  return at::scaled_dot_product_attention(query.transpose(0, 1).unsqueeze(0), repeat(key),
                                          repeat(value), /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                          /*is_causal=*/true)
      .squeeze(0)
      .transpose(0, 1)
      .reshape({query.size(0), -1});
}

// Attention of continuations to the prompt and causally to themselves.
// query: [n, length, heads, size]; key, value: [n, length, kv_heads, size];
// prompt_key, prompt_value: [kv_heads, prompt, size]. Returns [n * length, -1].
at::Tensor AttendContinuations(const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& prompt_key,
                               const at::Tensor& prompt_value) {
  const int64_t n = query.size(0);
  const int64_t length = query.size(1);
  const int64_t kv_heads = key.size(2);
  const int64_t group = query.size(2) / kv_heads;
  const int64_t size = query.size(3);
  const int64_t prompt = prompt_key.size(1);
  const double scale = 1.0 / std::sqrt(static_cast<double>(size));

  // [kv_heads, n, group, length, size]
  const at::Tensor grouped =
      query.view({n, length, kv_heads, group, size}).permute({2, 0, 3, 1, 4}).contiguous();
  // All queries of all continuations are rows against the one prompt.
  const at::Tensor to_prompt =
      at::matmul(grouped.view({kv_heads, -1, size}), prompt_key.transpose(1, 2))
          .to(at::kFloat)
          .view({kv_heads, n, group * length, prompt});
  const at::Tensor own_key = key.permute({2, 0, 3, 1});      // [kv_heads, n, size, length]
  const at::Tensor own_value = value.permute({2, 0, 1, 3});  // [kv_heads, n, length, size]
  const at::Tensor hidden =
      at::full({length, length}, -INFINITY, at::TensorOptions(at::kFloat).device(query.device()))
          .triu(1)
          .repeat({group, 1});
  const at::Tensor to_self =
      at::matmul(grouped.view({kv_heads, n, group * length, size}), own_key).to(at::kFloat);

  const at::Tensor weights =
      at::softmax(at::cat({to_prompt * scale, to_self * scale + hidden}, -1), -1)
          .to(query.scalar_type());
  const at::Tensor from_prompt =
      at::matmul(weights.narrow(-1, 0, prompt).reshape({kv_heads, -1, prompt}), prompt_value)
          .view({kv_heads, n, group * length, size});
  const at::Tensor from_self = at::matmul(weights.narrow(-1, prompt, length), own_value);
  return (from_prompt + from_self)
      .view({kv_heads, n, group, length, size})
      .permute({1, 3, 0, 2, 4})
      .reshape({n * length, -1});
}

// Attention of one tree. All arguments: [rows, heads, size] of the whole batch.
at::Tensor AttendTree(const Span& span, const at::Tensor& query, const at::Tensor& key,
                      const at::Tensor& value) {
  const auto prompt_rows = [&](const at::Tensor& x) {
    return x.narrow(0, span.first_row, span.prompt);
  };
  std::vector<at::Tensor> parts = {
      AttendPrompt(prompt_rows(query), prompt_rows(key), prompt_rows(value))};
  if (span.length == 0) return parts.front();
  const at::Tensor prompt_key = prompt_rows(key).transpose(0, 1);
  const at::Tensor prompt_value = prompt_rows(value).transpose(0, 1);
  const int64_t scores_each = query.size(1) * span.length * (span.prompt + span.length);
  const int64_t step = std::max<int64_t>(1, kMaxScores / std::max<int64_t>(1, scores_each));
  for (int64_t i = 0; i < span.continuations; i += step) {
    const int64_t count = std::min(step, span.continuations - i);
    const auto rows = [&](const at::Tensor& x) {
      return x.narrow(0, span.first_continuation_row() + i * span.length, count * span.length)
          .view({count, span.length, x.size(1), x.size(2)});
    };
    parts.push_back(
        AttendContinuations(rows(query), rows(key), rows(value), prompt_key, prompt_value));
  }
  return at::cat(parts);
}

at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
}

// x: [rows, hidden].
at::Tensor RunLayer(const LayerWeights& layer, const MtmcDecoderConfig& config, const Batch& batch,
                    const at::Tensor& cosine, const at::Tensor& sine, const at::Tensor& x) {
  const int64_t rows = x.size(0);
  const int64_t query_width = config.attention_heads * config.head_size;
  const int64_t key_width = config.key_value_heads * config.head_size;
  const at::Tensor joined = Linear(RmsNorm(x, layer.attention_norm, config.rms_norm_epsilon),
                                   layer.query_key_value, layer.query_key_value_bias);
  const auto heads = [&](int64_t first, int64_t width) {
    return joined.narrow(1, first, width).reshape({rows, -1, config.head_size});
  };
  const at::Tensor query = Rotate(heads(0, query_width), cosine, sine);
  const at::Tensor key = Rotate(heads(query_width, key_width), cosine, sine);
  const at::Tensor value = heads(query_width + key_width, key_width);
  std::vector<at::Tensor> attended;
  for (const Span& span : batch.spans) attended.push_back(AttendTree(span, query, key, value));
  const at::Tensor after_attention = x + Linear(at::cat(attended), layer.output, layer.output_bias);

  const at::Tensor gate_up =
      Linear(RmsNorm(after_attention, layer.mlp_norm, config.rms_norm_epsilon), layer.gate_up,
             layer.gate_up_bias);
  const int64_t inner = config.intermediate_size;
  const at::Tensor activated =
      at::silu(gate_up.narrow(1, 0, inner)) * gate_up.narrow(1, inner, inner);
  return after_attention + Linear(activated, layer.down, layer.down_bias);
}

// Log-probabilities of all targets, in their order. `last`: [rows, hidden].
std::vector<double> ScoreTargets(const at::Tensor& last, const at::Tensor& head,
                                 const std::vector<Target>& targets) {
  std::vector<double> scores;
  for (size_t begin = 0; begin < targets.size(); begin += kLogitRows) {
    const size_t end = std::min(targets.size(), begin + kLogitRows);
    std::vector<int64_t> rows;
    std::vector<int64_t> tokens;
    for (size_t i = begin; i < end; ++i) {
      rows.push_back(targets[i].row);
      tokens.push_back(targets[i].token);
    }
    const at::Tensor selected = last.index_select(0, ToTensor(rows, last.device()));
    const at::Tensor logits = at::linear(selected, head).to(at::kFloat);
    const at::Tensor chosen =
        logits.gather(1, ToTensor(tokens, last.device()).unsqueeze(1)).squeeze(1);
    const at::Tensor log_probabilities =
        (chosen - at::logsumexp(logits, {1})).to(at::kDouble).to(at::kCPU).contiguous();
    const double* const data = log_probabilities.const_data_ptr<double>();
    scores.insert(scores.end(), data, data + log_probabilities.numel());
  }
  return scores;
}

}  // namespace

std::vector<double> ScoreTrees(const DecoderWeights& model, const MtmcDecoderTree* trees,
                               size_t count) {
  if (count == 0) return {};
  const c10::InferenceMode guard;
  const at::Device device = model.embedding.device();
  Batch batch;
  for (size_t i = 0; i < count; ++i) AddTree(trees[i], batch);

  at::Tensor x = at::embedding(model.embedding, ToTensor(batch.tokens, device));
  const at::Tensor angles =
      at::outer(ToTensor(batch.positions, device).to(at::kFloat), model.rope_frequencies)
          .unsqueeze(1);
  const double factor = model.config.rope_attention_factor;
  const at::Tensor cosine = (angles.cos() * factor).to(x.scalar_type());
  const at::Tensor sine = (angles.sin() * factor).to(x.scalar_type());
  for (const LayerWeights& layer : model.layers) {
    x = RunLayer(layer, model.config, batch, cosine, sine, x);
  }
  x = RmsNorm(x, model.final_norm, model.config.rms_norm_epsilon);
  return ScoreTargets(x, model.head, batch.targets);
}

}  // namespace mtmc::policy

// SPDX-License-Identifier: Apache-2.0
#include "policy/model/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace mtmc::policy {
namespace {

using Json = nlohmann::json;

// Larger than any model, and small enough that the product of two fits int64.
constexpr int64_t kLargestNumber = int64_t{1} << 31;

// Reads typed values with a range; every message names the key.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {}

  // The value if present and not null, else nullptr.
  const Json* Find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  absl::StatusOr<int64_t> Integer(const char* key) const {
    const Json* value = Find(key);
    if (value == nullptr) return Error(key, "is missing");
    if (!value->is_number_integer()) return Error(key, "is not an integer");
    const auto number = value->get<int64_t>();
    if (number < 1 || number > kLargestNumber) {
      return Error(key, absl::StrCat("is ", number, ", must be 1 to ", kLargestNumber));
    }
    return number;
  }

  absl::StatusOr<int64_t> Integer(const char* key, int64_t fallback) const {
    return Find(key) == nullptr ? absl::StatusOr<int64_t>(fallback) : Integer(key);
  }

  absl::StatusOr<double> Positive(const char* key, double fallback) const {
    const Json* value = Find(key);
    if (value == nullptr) return fallback;
    if (!value->is_number()) return Error(key, "is not a number");
    const auto number = value->get<double>();
    if (!(number > 0) || !std::isfinite(number)) return Error(key, "must be positive");
    return number;
  }

  absl::StatusOr<bool> Boolean(const char* key, bool fallback) const {
    const Json* value = Find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) return Error(key, "is not a boolean");
    return value->get<bool>();
  }

  absl::StatusOr<std::string> Text(const char* key, const std::string& fallback) const {
    const Json* value = Find(key);
    if (value == nullptr) return fallback;
    if (!value->is_string()) return Error(key, "is not a string");
    return value->get<std::string>();
  }

 private:
  absl::Status Error(const char* key, const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": '", key, "' ", what));
  }

  const Json& object_;
  std::string path_;
};

absl::StatusOr<RopeConfig::Scaling> ScalingFromName(const std::string& name) {
  if (name == "default" || name.empty()) return RopeConfig::Scaling::kNone;
  if (name == "linear") return RopeConfig::Scaling::kLinear;
  if (name == "dynamic") return RopeConfig::Scaling::kDynamic;
  if (name == "llama3") return RopeConfig::Scaling::kLlama3;
  if (name == "yarn") return RopeConfig::Scaling::kYarn;
  return absl::UnimplementedError(absl::StrCat(
      "config.json: rope type '", name, "' is not one of default, linear, dynamic, llama3, yarn"));
}

// 0.1 m ln(s) + 1, the temperature of YaRN's equation 15 and its variant with
// a multiplier.
double YarnScale(double factor, double multiplier) {
  return factor <= 1 ? 1.0 : 0.1 * multiplier * std::log(factor) + 1.0;
}

absl::Status ReadYarn(const ObjectReader& reader, RopeConfig& rope) {
  MTMC_ASSIGN_OR_RETURN(rope.beta_fast, reader.Positive("beta_fast", 32.0));
  MTMC_ASSIGN_OR_RETURN(rope.beta_slow, reader.Positive("beta_slow", 1.0));
  const bool truncates = [&] {
    const absl::StatusOr<bool> value = reader.Boolean("truncate", true);
    return value.ok() && *value;
  }();
  if (!truncates) return absl::UnimplementedError("config.json: yarn without 'truncate'");
  double inferred = YarnScale(rope.factor, 1.0);
  if (reader.Find("mscale") != nullptr && reader.Find("mscale_all_dim") != nullptr) {
    MTMC_ASSIGN_OR_RETURN(const double scale, reader.Positive("mscale", 1.0));
    MTMC_ASSIGN_OR_RETURN(const double scale_all, reader.Positive("mscale_all_dim", 1.0));
    inferred = YarnScale(rope.factor, scale) / YarnScale(rope.factor, scale_all);
  }
  MTMC_ASSIGN_OR_RETURN(rope.attention_factor, reader.Positive("attention_factor", inferred));
  return absl::OkStatus();
}

// Transformers 5 writes `rope_parameters`; earlier versions write `rope_theta`
// beside an optional `rope_scaling`, whose type key was once called `type`.
absl::StatusOr<RopeConfig> ReadRope(const Json& root, int64_t max_positions) {
  const ObjectReader top(root, "config.json");
  RopeConfig rope;
  MTMC_ASSIGN_OR_RETURN(rope.theta, top.Positive("rope_theta", 10000.0));
  const char* key = top.Find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling";
  const Json* parameters = top.Find(key);
  if (parameters == nullptr) return rope;
  if (!parameters->is_object()) {
    return absl::InvalidArgumentError(absl::StrCat("config.json: '", key, "' is not an object"));
  }
  const ObjectReader reader(*parameters, absl::StrCat("config.json: ", key));
  MTMC_ASSIGN_OR_RETURN(rope.theta, reader.Positive("rope_theta", rope.theta));
  MTMC_ASSIGN_OR_RETURN(const std::string old_name, reader.Text("type", "default"));
  MTMC_ASSIGN_OR_RETURN(const std::string name, reader.Text("rope_type", old_name));
  MTMC_ASSIGN_OR_RETURN(rope.scaling, ScalingFromName(name));
  MTMC_ASSIGN_OR_RETURN(rope.factor, reader.Positive("factor", 1.0));
  MTMC_ASSIGN_OR_RETURN(rope.low_frequency_factor, reader.Positive("low_freq_factor", 1.0));
  MTMC_ASSIGN_OR_RETURN(rope.high_frequency_factor, reader.Positive("high_freq_factor", 4.0));
  MTMC_ASSIGN_OR_RETURN(rope.original_max_positions,
                        reader.Integer("original_max_position_embeddings", max_positions));
  if (rope.scaling == RopeConfig::Scaling::kLlama3 &&
      rope.high_frequency_factor <= rope.low_frequency_factor) {
    return absl::InvalidArgumentError(
        "config.json: 'high_freq_factor' must be larger than 'low_freq_factor'");
  }
  if (rope.scaling == RopeConfig::Scaling::kYarn) MTMC_RETURN_IF_ERROR(ReadYarn(reader, rope));
  return rope;
}

absl::Status ReadFeatures(const ObjectReader& top, ModelConfig& config) {
  MTMC_ASSIGN_OR_RETURN(const std::string activation, top.Text("hidden_act", "silu"));
  if (activation != "silu") {
    return absl::UnimplementedError(
        absl::StrCat("config.json: 'hidden_act' is '", activation, "', only silu is there"));
  }
  MTMC_ASSIGN_OR_RETURN(const bool slides, top.Boolean("use_sliding_window", false));
  if (slides) return absl::UnimplementedError("config.json: 'use_sliding_window' is true");
  MTMC_ASSIGN_OR_RETURN(config.ties_word_embeddings, top.Boolean("tie_word_embeddings", false));
  if (config.family == "qwen2") {
    // The family's attention always has these, and no key says so.
    config.has_query_key_value_bias = true;
    return absl::OkStatus();
  }
  MTMC_ASSIGN_OR_RETURN(config.has_output_bias, top.Boolean("attention_bias", false));
  config.has_query_key_value_bias = config.has_output_bias;
  MTMC_ASSIGN_OR_RETURN(config.has_mlp_bias, top.Boolean("mlp_bias", false));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelConfig> ParseModelConfig(std::string_view json) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return absl::InvalidArgumentError("config.json is not a JSON object");
  const ObjectReader top(root, "config.json");
  ModelConfig config;
  MTMC_ASSIGN_OR_RETURN(config.family, top.Text("model_type", ""));
  if (config.family != "llama" && config.family != "qwen2") {
    return absl::UnimplementedError(
        absl::StrCat("config.json: 'model_type' is '", config.family, "', must be llama or qwen2"));
  }
  MTMC_ASSIGN_OR_RETURN(config.vocab_size, top.Integer("vocab_size"));
  MTMC_ASSIGN_OR_RETURN(config.hidden_size, top.Integer("hidden_size"));
  MTMC_ASSIGN_OR_RETURN(config.intermediate_size, top.Integer("intermediate_size"));
  MTMC_ASSIGN_OR_RETURN(config.layers, top.Integer("num_hidden_layers"));
  MTMC_ASSIGN_OR_RETURN(config.attention_heads, top.Integer("num_attention_heads"));
  MTMC_ASSIGN_OR_RETURN(config.key_value_heads,
                        top.Integer("num_key_value_heads", config.attention_heads));
  MTMC_ASSIGN_OR_RETURN(
      config.head_size,
      top.Integer("head_dim", std::max<int64_t>(1, config.hidden_size / config.attention_heads)));
  MTMC_ASSIGN_OR_RETURN(config.max_positions, top.Integer("max_position_embeddings", 2048));
  MTMC_ASSIGN_OR_RETURN(config.rms_norm_epsilon, top.Positive("rms_norm_eps", 1e-6));
  if (config.attention_heads % config.key_value_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("config.json: ", config.attention_heads,
                                                   " attention heads are no multiple of ",
                                                   config.key_value_heads, " key-value heads"));
  }
  if (config.head_size % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("config.json: 'head_dim' is ", config.head_size, ", must be even"));
  }
  MTMC_RETURN_IF_ERROR(ReadFeatures(top, config));
  MTMC_ASSIGN_OR_RETURN(config.rope, ReadRope(root, config.max_positions));
  return config;
}

namespace {

// Wavelengths beyond original/low are stretched, under original/high kept.
double Llama3Frequency(const RopeConfig& rope, double frequency) {
  const auto original = static_cast<double>(rope.original_max_positions);
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  if (wavelength > original / rope.low_frequency_factor) return frequency / rope.factor;
  if (wavelength < original / rope.high_frequency_factor) return frequency;
  const double blend = (original / wavelength - rope.low_frequency_factor) /
                       (rope.high_frequency_factor - rope.low_frequency_factor);
  return (1.0 - blend) * frequency / rope.factor + blend * frequency;
}

// Index of the dimension pair that turns `rotations` times over the context.
double YarnPair(const RopeConfig& rope, double head_size, double rotations) {
  const auto original = static_cast<double>(rope.original_max_positions);
  return head_size * std::log(original / (rotations * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(rope.theta));
}

double YarnFrequency(const RopeConfig& rope, double head_size, double pair, double frequency) {
  const double low = std::max(0.0, std::floor(YarnPair(rope, head_size, rope.beta_fast)));
  double high = std::min(head_size - 1, std::ceil(YarnPair(rope, head_size, rope.beta_slow)));
  if (high == low) high += 0.001;  // as the published code, to avoid 0 / 0
  const double ramp = std::clamp((pair - low) / (high - low), 0.0, 1.0);
  return (frequency / rope.factor) * ramp + frequency * (1.0 - ramp);
}

}  // namespace

std::vector<double> RopeFrequencies(const RopeConfig& rope, int64_t head_size) {
  std::vector<double> frequencies(static_cast<size_t>(head_size / 2));
  const auto size = static_cast<double>(head_size);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const auto pair = static_cast<double>(i);
    const double frequency = std::pow(rope.theta, -2.0 * pair / size);
    switch (rope.scaling) {
      case RopeConfig::Scaling::kNone:
      case RopeConfig::Scaling::kDynamic:
        frequencies[i] = frequency;
        break;
      case RopeConfig::Scaling::kLinear:
        frequencies[i] = frequency / rope.factor;
        break;
      case RopeConfig::Scaling::kLlama3:
        frequencies[i] = Llama3Frequency(rope, frequency);
        break;
      case RopeConfig::Scaling::kYarn:
        frequencies[i] = YarnFrequency(rope, size, pair, frequency);
        break;
    }
  }
  return frequencies;
}

}  // namespace mtmc::policy

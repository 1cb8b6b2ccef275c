// SPDX-License-Identifier: Apache-2.0
//
// The readers of outside bytes: configuration, tokenizer, safetensors.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "policy/model/action_scorer.h"
#include "policy/model/config.h"
#include "policy/model/safetensors.h"
#include "policy/model/tokenizer_json.h"
#include "policy/model/unicode.h"

namespace mtmc::policy {
namespace {

using absl::StatusCode;
using Catch::Matchers::WithinRel;

constexpr char kLlama[] = R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048,
  "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
  "num_key_value_heads": 8, "max_position_embeddings": 131072, "rope_theta": 500000.0,
  "tie_word_embeddings": true, "rms_norm_eps": 1e-05,
  "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
  "original_max_position_embeddings": 8192, "rope_type": "llama3"}})";

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("ParseModelConfig reads a Llama 3.2 configuration", "[policy]") {
  const absl::StatusOr<ModelConfig> config = ParseModelConfig(kLlama);

  REQUIRE(config.ok());
  CHECK(config->head_size == 64);
  CHECK(config->key_value_heads == 8);
  CHECK(config->ties_word_embeddings);
  CHECK(config->rope.scaling == RopeConfig::Scaling::kLlama3);
  CHECK_FALSE(config->has_query_key_value_bias);
}

TEST_CASE("ParseModelConfig gives Qwen2 its biases", "[policy]") {
  const auto config = ParseModelConfig(Replace(kLlama, "\"llama\"", "\"qwen2\""));

  REQUIRE(config.ok());
  CHECK(config->has_query_key_value_bias);
  CHECK_FALSE(config->has_output_bias);
}

TEST_CASE("ParseModelConfig refuses what the decoder cannot do", "[policy]") {
  auto [from, to, code] = GENERATE(table<std::string, std::string, StatusCode>({
      {"\"llama\"", "\"mamba\"", StatusCode::kUnimplemented},
      {"\"llama3\"", "\"longrope\"", StatusCode::kUnimplemented},
      {"\"vocab_size\": 128256", "\"vocab_size\": -1", StatusCode::kInvalidArgument},
      {"\"vocab_size\": 128256", "\"vocab_size\": 1e99", StatusCode::kInvalidArgument},
      {"\"hidden_size\": 2048", "\"hidden\": 2048", StatusCode::kInvalidArgument},
      {"\"num_key_value_heads\": 8", "\"num_key_value_heads\": 7", StatusCode::kInvalidArgument},
      {"\"num_attention_heads\": 32", "\"num_attention_heads\": \"32\"",
       StatusCode::kInvalidArgument},
      {"\"factor\": 32.0", "\"factor\": -2", StatusCode::kInvalidArgument},
      {"{\"model_type\"", "[\"model_type\"", StatusCode::kInvalidArgument},
  }));
  CAPTURE(from, to);

  CHECK(ParseModelConfig(Replace(kLlama, from, to)).status().code() == code);
}

TEST_CASE("RopeFrequencies keeps short waves and stretches long ones in Llama 3", "[policy]") {
  const absl::StatusOr<ModelConfig> config = ParseModelConfig(kLlama);
  REQUIRE(config.ok());

  const std::vector<double> frequencies = RopeFrequencies(config->rope, config->head_size);

  const double last = std::pow(500000.0, -62.0 / 64.0);
  CHECK_THAT(frequencies.front(), WithinRel(1.0, 1e-12));
  CHECK_THAT(frequencies.back(), WithinRel(last / 32.0, 1e-12));
}

constexpr char kTokenizer[] = R"({"added_tokens": [{"id": 4, "content": "<s>"}],
  "normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Split",
  "pattern": {"String": "."}, "behavior": "Removed", "invert": false},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]}}},
  "model": {"type": "BPE", "unk_token": "?", "fuse_unk": true,
    "vocab": {"a": 0, "b": 1, "ab": 2, "?": 3, "é": 5}, "merges": ["a b"]}})";

std::vector<int32_t> Encode(const std::string& json, const std::string& text) {
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = ReadTokenizer(json);
  INFO(tokenizer.status().ToString());
  REQUIRE(tokenizer.ok());
  const absl::StatusOr<std::vector<int32_t>> ids = (*tokenizer)->Encode(text);
  REQUIRE(ids.ok());
  return *ids;
}

TEST_CASE("Tokenizer merges within pieces only", "[policy]") {
  CHECK(Encode(kTokenizer, "aba.b") == std::vector<int32_t>{2, 0, 1});
}

TEST_CASE("Tokenizer composes before it looks up", "[policy]") {
  CHECK(Encode(kTokenizer, "e\xcc\x81") == std::vector<int32_t>{5});
}

TEST_CASE("Tokenizer fuses a run of unknown characters", "[policy]") {
  CHECK(Encode(kTokenizer, "xyzab<s>x") == std::vector<int32_t>{3, 2, 4, 3});
}

TEST_CASE("Tokenizer takes merges written as pairs", "[policy]") {
  CHECK(Encode(Replace(kTokenizer, "[\"a b\"]", "[[\"a\", \"b\"]]"), "ab") ==
        std::vector<int32_t>{2});
}

TEST_CASE("Tokenizer writes an unknown character as bytes where declared", "[policy]") {
  const std::string json =
      Replace(Replace(kTokenizer, "\"fuse_unk\": true", "\"byte_fallback\": true"), "\"a\": 0",
              "\"a\": 0, \"<0xC3>\": 6, \"<0xA4>\": 7");

  CHECK(Encode(json, "a\xc3\xa4") == std::vector<int32_t>{0, 6, 7});
}

TEST_CASE("Tokenizer refuses text that is not UTF-8", "[policy]") {
  const auto tokenizer = ReadTokenizer(kTokenizer);
  REQUIRE(tokenizer.ok());

  CHECK((*tokenizer)->Encode("a\xff").status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("ReadTokenizer says which part it cannot read", "[policy]") {
  auto [from, to, code] = GENERATE(table<std::string, std::string, StatusCode>({
      {"\"NFC\"", "\"Lowercase\"", StatusCode::kUnimplemented},
      {"\"Split\"", "\"Metaspace\"", StatusCode::kUnimplemented},
      {"\"BPE\"", "\"Unigram\"", StatusCode::kUnimplemented},
      {"{\"String\": \".\"}", "{\"Regex\": \"(\"}", StatusCode::kInvalidArgument},
      {"\"Removed\"", "\"Sideways\"", StatusCode::kInvalidArgument},
      {"[\"a b\"]", "[\"a z\"]", StatusCode::kInvalidArgument},
      {"[\"a b\"]", "[7]", StatusCode::kInvalidArgument},
      {"\"a\": 0", "\"a\": -4", StatusCode::kInvalidArgument},
      {"\"ids\": [4]", "\"ids\": 4", StatusCode::kInvalidArgument},
      {"\"unk_token\": \"?\"", "\"unk_token\": \"!\"", StatusCode::kInvalidArgument},
      {"{\"added_tokens\"", "{{\"added_tokens\"", StatusCode::kInvalidArgument},
  }));
  CAPTURE(from, to);

  CHECK(ReadTokenizer(Replace(kTokenizer, from, to)).status().code() == code);
}

TEST_CASE("Regex stops a pattern that backtracks without end", "[policy]") {
  const absl::StatusOr<Regex> regex = Regex::Create("(a+)+$(?<=b)|(?:(x+x+)+y)");
  REQUIRE(regex.ok());

  CHECK(regex->FindAll(std::string(60, 'x')).status().code() == StatusCode::kResourceExhausted);
}

TEST_CASE("ParseSafetensorsHeader checks every range", "[policy]") {
  auto [entry, is_good] = GENERATE(table<std::string, bool>({
      {R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})", true},
      {R"({"dtype":"BF16","shape":[],"data_offsets":[62,64]})", true},
      {R"({"dtype":"I64","shape":"unread","data_offsets":[0,8]})", true},
      {R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,20]})", false},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[60,68]})", false},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", false},
      {R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", false},
      {R"({"dtype":"F32","shape":[4611686018427387904,4,4],"data_offsets":[0,0]})", false},
      {R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})", false},
      {R"({"dtype":"F32"})", false},
      {R"([])", false},
  }));
  CAPTURE(entry);

  const auto entries = ParseSafetensorsHeader("{\"__metadata__\":{},\"w\":" + entry + "}", 64);

  CHECK(entries.ok() == is_good);
}

std::string SafetensorsFile(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + header + data;
}

TEST_CASE("WeightFiles opens shards through the index", "[policy]") {
  const auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  const std::string path = folder->path().string();
  const std::string header = R"({"w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})";
  REQUIRE(base::WriteFileAtomically(path + "/a.safetensors", SafetensorsFile(header, "1234")).ok());
  REQUIRE(base::WriteFileAtomically(path + "/model.safetensors.index.json",
                                    R"({"weight_map":{"w":"a.safetensors"}})")
              .ok());

  const absl::StatusOr<WeightFiles> weights = WeightFiles::Open(path);

  REQUIRE(weights.ok());
  REQUIRE(weights->Find("w") != nullptr);
  CHECK(weights->Find("w")->bytes.size() == 4);
  CHECK(weights->Find("v") == nullptr);
}

TEST_CASE("WeightFiles refuses an index that leads out of the folder", "[policy]") {
  const auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  const std::string path = folder->path().string();
  REQUIRE(base::WriteFileAtomically(path + "/model.safetensors.index.json",
                                    R"({"weight_map":{"w":"../../etc/passwd"}})")
              .ok());

  CHECK(WeightFiles::Open(path).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("WeightFiles refuses a truncated file", "[policy]") {
  const std::string header = R"({"w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})";
  const std::string whole = SafetensorsFile(header, "1234");
  const auto length = static_cast<size_t>(GENERATE(0, 7, 8, 30, 61));
  CAPTURE(length);
  const auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  const std::string path = folder->path().string();
  REQUIRE(base::WriteFileAtomically(path + "/model.safetensors", whole.substr(0, length)).ok());

  CHECK(WeightFiles::Open(path).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("WeightFiles says that a folder has no weights", "[policy]") {
  CHECK(WeightFiles::Open("/nonexistent").status().code() == StatusCode::kNotFound);
}

TEST_CASE("Unicode predicates see whole characters", "[policy]") {
  CHECK(IsUtf8("gelu é 你"));
  CHECK_FALSE(IsUtf8("\xc3"));
  CHECK(TrailingWhiteSpace("a\xe3\x80\x80 ") == 4);
  CHECK(LeadingWhiteSpace(" \xc2\xa0x") == 3);
}

TEST_CASE("ActionScore normalises by tokens or words", "[policy]") {
  const ActionScore score = {{-1.0, -2.0, -3.0, -6.0}};

  CHECK(score.Sum() == -12.0);
  CHECK(score.TokenMean() == -3.0);
  CHECK(score.WordMean("fuse gelu  mul") == -4.0);
}

}  // namespace
}  // namespace mtmc::policy

// SPDX-License-Identifier: Apache-2.0
//
// Our readers and our decoder against the `tokenizers` and `transformers`
// packages, on what testdata/make_models.py wrote (a ctest fixture).
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "policy/model/model_scorer.h"
#include "policy/model/tokenizer_json.h"

namespace mtmc::policy {
namespace {

using Json = nlohmann::json;

// float32 against float32 in another order of summation.
constexpr double kTolerance = 1e-4;

std::string FolderOf(const std::string& model) {
  const char* const models = std::getenv("MTMC_TEST_MODELS");
  return std::string(models == nullptr ? "." : models) + "/" + model;
}

Json CasesOf(const std::string& model) {
  const absl::StatusOr<std::string> text = base::ReadFile(FolderOf(model) + "/cases.json");
  REQUIRE(text.ok());
  return Json::parse(*text);
}

std::unique_ptr<ActionScorer> Load(const std::string& model, bool keeps_bfloat16 = false) {
  absl::StatusOr<std::unique_ptr<ActionScorer>> scorer =
      LoadModelScorer(FolderOf(model), {.plugin_path = MTMC_BINARY_DIR "/../lib/mtmc_lm.so",
                                        .torch_folder = "",
                                        .device = "cpu",
                                        .keeps_bfloat16 = keeps_bfloat16});
  INFO(scorer.status().ToString());
  REQUIRE(scorer.ok());
  return *std::move(scorer);
}

std::vector<ScoreRequest> RequestsOf(const Json& cases) {
  std::vector<ScoreRequest> requests;
  for (const Json& score : cases["scores"]) {
    requests.push_back({.prompt = score["prompt"], .actions = score["actions"]});
  }
  return requests;
}

// Largest distance of any token's log-probability from the expected one.
double LargestError(const std::vector<ActionScorer::Result>& results, const Json& cases) {
  double largest = 0;
  REQUIRE(results.size() == cases["scores"].size());
  for (size_t r = 0; r < results.size(); ++r) {
    INFO(results[r].status().ToString());
    REQUIRE(results[r].ok());
    const Json& expected = cases["scores"][r]["log_probabilities"];
    REQUIRE(results[r]->size() == expected.size());
    for (size_t a = 0; a < expected.size(); ++a) {
      const std::vector<double>& tokens = (*results[r])[a].token_log_probabilities;
      REQUIRE(tokens.size() == expected[a].size());
      for (size_t t = 0; t < tokens.size(); ++t) {
        largest = std::max(largest, std::abs(tokens[t] - expected[a][t].get<double>()));
      }
    }
  }
  return largest;
}

TEST_CASE("Tokenizer gives the ids of the tokenizers package", "[policy]") {
  const std::string model =
      GENERATE(std::string("llama"), std::string("qwen2"), std::string("gpt2_tokenizer"),
               std::string("deepseek_tokenizer"));
  const Json cases = CasesOf(model);
  const absl::StatusOr<std::string> text = base::ReadFile(FolderOf(model) + "/tokenizer.json");
  REQUIRE(text.ok());
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = ReadTokenizer(*text);
  INFO(tokenizer.status().ToString());
  REQUIRE(tokenizer.ok());
  REQUIRE(cases["strings"].size() == 1000);

  int mismatches = 0;
  for (size_t i = 0; i < cases["strings"].size(); ++i) {
    const absl::StatusOr<std::vector<int32_t>> ids =
        (*tokenizer)->Encode(cases["strings"][i].get<std::string>());
    const bool is_equal = ids.ok() && *ids == cases["ids"][i].get<std::vector<int32_t>>();
    if (is_equal) continue;
    ++mismatches;
    UNSCOPED_INFO(model << " differs on " << cases["strings"][i].dump(-1, ' ', true));
  }

  CHECK(mismatches == 0);
  CHECK((*tokenizer)->prefix() == cases["prefix"].get<std::vector<int32_t>>());
}

TEST_CASE("ActionScorer gives the log-probabilities of the transformers package", "[policy]") {
  const std::string model = GENERATE(std::string("llama"), std::string("llama_yarn"),
                                     std::string("llama_linear"), std::string("qwen2"));
  const Json cases = CasesOf(model);
  const std::unique_ptr<ActionScorer> scorer = Load(model);

  CAPTURE(model);
  CHECK(LargestError(scorer->Score(RequestsOf(cases)), cases) < kTolerance);
}

TEST_CASE("ActionScorer results do not depend on the batch", "[policy]") {
  const Json cases = CasesOf("qwen2");
  const std::unique_ptr<ActionScorer> scorer = Load("qwen2");
  std::vector<ActionScorer::Result> results;

  for (const ScoreRequest& request : RequestsOf(cases)) {
    results.push_back(scorer->Score(std::span(&request, 1)).front());
  }

  CHECK(LargestError(results, cases) < kTolerance);
}

TEST_CASE("ActionScorer in bfloat16 stays near float32", "[policy]") {
  const Json cases = CasesOf("llama");
  const std::unique_ptr<ActionScorer> scorer = Load("llama", /*keeps_bfloat16=*/true);

  // bfloat16 has 8 bits of mantissa; these random weights amplify its error.
  CHECK(LargestError(scorer->Score(RequestsOf(cases)), cases) < 1.0);
}

TEST_CASE("ActionScorer refuses what exceeds the context, for that request only", "[policy]") {
  const std::unique_ptr<ActionScorer> scorer = Load("llama");
  std::string longer;
  for (int i = 0; i < 3000; ++i) longer += " x" + std::to_string(i);
  const std::vector<ScoreRequest> requests = {{longer + " Next action:", {"stop"}},
                                              {"Next action:", {"stop"}}};

  const std::vector<ActionScorer::Result> results = scorer->Score(requests);

  CHECK(results[0].status().code() == absl::StatusCode::kOutOfRange);
  CHECK(results[1].ok());
}

TEST_CASE("ActionScorer refuses a token that crosses the seam", "[policy]") {
  const std::unique_ptr<ActionScorer> scorer = Load("llama");
  // The two white-space ends join into one token.
  const std::vector<ScoreRequest> requests = {{"Next action: ", {" stop"}}};

  const std::vector<ActionScorer::Result> results = scorer->Score(requests);

  CHECK(results[0].status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("ActionScorer digest tells models apart", "[policy]") {
  const std::string llama = Load("llama")->model_digest();

  CHECK(llama.size() == 64);
  CHECK(llama == Load("llama")->model_digest());
  CHECK(llama != Load("qwen2")->model_digest());
}

TEST_CASE("LoadModelScorer names the missing tensor", "[policy]") {
  // The weights of one model under the configuration of another.
  const std::string folder = FolderOf("mismatch");
  for (const char* file : {"config.json", "tokenizer.json"}) {
    const auto bytes = base::ReadFile(FolderOf("llama_yarn") + "/" + file);
    REQUIRE(bytes.ok());
    REQUIRE(base::WriteFileAtomically(folder + "/" + file, *bytes).ok());
  }
  const auto weights = base::ReadFile(FolderOf("llama") + "/model.safetensors");
  REQUIRE(weights.ok());
  REQUIRE(base::WriteFileAtomically(folder + "/model.safetensors", *weights).ok());

  const absl::Status status =
      LoadModelScorer(folder, {.plugin_path = MTMC_BINARY_DIR "/../lib/mtmc_lm.so"}).status();

  CHECK(status.message().find("model.layers.0.self_attn.q_proj.weight") != std::string::npos);
  CHECK_FALSE(status.ok());
}

}  // namespace
}  // namespace mtmc::policy

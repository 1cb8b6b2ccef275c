// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/manifest.h"

#include <catch2/catch.hpp>

#include "common/testing/status_matchers.h"

namespace mtmc::worker {
namespace {

using testing::IsOk;
using testing::StatusIs;

}  // namespace

TEST_CASE("A manifest names problem and program, the rest has defaults", "[worker]") {
  const auto entries = ParseManifest("{\"problem\": \"p/relu.py\", \"program\": \"q/a.cu\"}\n\n");

  REQUIRE_THAT(entries.status(), IsOk());
  REQUIRE(entries->size() == 1);
  const ManifestEntry& entry = entries->front();
  CHECK(entry.name == "a.cu");
  CHECK(entry.problem_path == "p/relu.py");
  CHECK(entry.problem.display_name() == "relu");
  CHECK(entry.problem.precision() == v1::PRECISION_UNSPECIFIED);
  CHECK(entry.allowed_calls.empty());
}

TEST_CASE("A manifest sets what an evaluation depends on", "[worker]") {
  const auto entries = ParseManifest(
      R"({"problem": "p.py", "program": "a.cl", "name": "first", "precision": "tf32", )"
      R"("seed": 7, "randomize_identity_parameters": true, "allowed_calls": ["aten::mm"], )"
      R"("fixed": ["mask"], "nonfinite": true, )"
      R"("options": {"hidden_seeds": 3, "omitProfile": true, "build_timeout": "2s"}})");

  REQUIRE_THAT(entries.status(), IsOk());
  const ManifestEntry& entry = entries->front();
  CHECK(entry.name == "first");
  CHECK(entry.problem.precision() == v1::PRECISION_TF32);
  CHECK(entry.problem.seed() == 7);
  CHECK(entry.problem.randomize_identity_parameters());
  REQUIRE(entry.problem.fixed_size() == 1);
  CHECK(entry.problem.fixed(0) == "mask");
  CHECK(entry.problem.nonfinite());
  CHECK(entry.allowed_calls == std::vector<std::string>{"aten::mm"});
  CHECK(entry.options.hidden_seeds() == 3);
  CHECK(entry.options.omit_profile());
  CHECK(entry.options.build_timeout().seconds() == 2);
}

TEST_CASE("A manifest error names the line and the reason", "[worker]") {
  const std::string good = "{\"problem\": \"p\", \"program\": \"a\"}\n";
  const std::pair<std::string, std::string> cases[] = {
      {"not JSON", "it is not a JSON object"},
      {"[1]", "it is not a JSON object"},
      {R"({"problem": "p"})", "\"program\" is missing"},
      {R"({"program": "a"})", "\"problem\" is missing"},
      {R"({"problem": 3, "program": "a"})", "\"problem\" is not a text"},
      {R"({"problem": "p", "program": "a", "colour": "red"})", "\"colour\" is not known"},
      {R"({"problem": "p", "program": "a", "precision": "fp8"})", "no precision class"},
      {R"({"problem": "p", "program": "a", "options": {"seeds": 1}})", "EvaluationOptions"},
      {R"({"problem": "p", "program": "a", "allowed_calls": "mm"})", "is not a list"},
      {R"({"problem": "p", "program": "a", "fixed": "mask"})", "is not a list"},
  };
  for (const auto& [line, reason] : cases) {
    INFO(line);
    const auto entries = ParseManifest(good + line);
    CHECK_THAT(entries.status(), StatusIs(absl::StatusCode::kInvalidArgument));
    CHECK_THAT(std::string(entries.status().message()), Catch::Contains("line 2: "));
    CHECK_THAT(std::string(entries.status().message()), Catch::Contains(reason));
  }
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "tests/load/answers.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_format.h"
#include "common/testing/status_matchers.h"
#include "kernel/engine/engine.h"
#include "kernel/graph/graph_proto.h"

namespace mtmc::load {
namespace {

using testing::IsOk;

v1::Lease EvaluationOf(int quality) {
  v1::Lease lease;
  lease.mutable_evaluation()->mutable_program()->set_sha256(absl::StrFormat("%02x00", quality));
  return lease;
}

TEST_CASE("The engine writes programs for the graph that inspections answer with") {
  v1::Lease lease;
  lease.mutable_inspection();
  const v1::LeaseResult result = Answer(lease);
  const auto graph = kernel::FromProto(result.inspection().graph());
  REQUIRE_THAT(graph.status(), IsOk());
  const auto program = kernel::CreateProgram(*graph, {});
  REQUIRE_THAT(program.status(), IsOk());
  const auto actions = kernel::ListActions(*graph, program->schedule, {});
  REQUIRE_THAT(actions.status(), IsOk());
  CHECK(actions->size() > 5);
}

TEST_CASE("One program of eight is wrong, the others have a speedup of their own") {
  int wrong = 0;
  for (int quality = 0; quality < 256; ++quality) {
    const v1::Evaluation evaluation = Answer(EvaluationOf(quality)).evaluation();
    wrong += evaluation.has_failure() ? 1 : 0;
    CHECK(evaluation.has_failure() != evaluation.has_measurement());
    if (evaluation.has_measurement()) {
      CHECK(evaluation.comparisons(0).speedup() == Approx(0.5 + quality / 128.0));
    }
  }
  CHECK(wrong == 32);
}

}  // namespace
}  // namespace mtmc::load

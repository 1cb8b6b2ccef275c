// SPDX-License-Identifier: Apache-2.0
#include "worker/bench/compare_bench.h"

#include <catch2/catch.hpp>
#include <iostream>

#include "common/base/temp_dir.h"
#include "common/testing/status_matchers.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "worker/bench/synthetic_program.h"
#include "worker/builder/client.h"

namespace mtmc::worker {
namespace {

using Outcome = ComparisonResult::Outcome;

TEST_CASE("A program that takes eight times as long is never FASTER", "[bench]") {
  auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  const SyntheticRunner::Options options{
      .program = MTMC_BINARY_DIR "/mtmc-runner", .scratch = folder->path() / "first", .tools = {}};
  SyntheticRunner first(options);
  SyntheticRunner second(
      {.program = options.program, .scratch = folder->path() / "second", .tools = {}});
  const auto device = first.Open({});
  if (absl::IsUnavailable(device.status())) {
    std::cout << "SKIPPED: " << device.status() << "\n";
    return;
  }
  REQUIRE_THAT(second.Open({}).status(), testing::IsOk());
  const std::string text = SyntheticProgram(v1::DIALECT_OPENCL);
  BuilderClient builder({.program = MTMC_BINARY_DIR "/mtmc-builder",
                         .scratch = folder->path() / "builder",
                         .tools = {}});
  pipe::v1::BuilderRequest build;
  build.mutable_build()->set_program(text);
  *build.mutable_build()->mutable_device() = *device;
  const auto built = builder.Call(build, absl::Seconds(60));
  REQUIRE(built.is_answered());
  REQUIRE(built.response.built_size() == 1);

  CompareBench bench(first, second,
                     {.lengths = {2e-3},
                      .slowdowns = {8},
                      .runs = 1,
                      .text = text,
                      .binary = built.response.built(0).binary()});
  const auto cases = bench.Run();

  REQUIRE_THAT(cases.status(), testing::IsOk());
  REQUIRE(cases->size() == 1);
  const CompareCase& one = cases->front();
  CHECK(one.candidate_loops > one.baseline_loops);
  REQUIRE(one.rows.size() == 1);
  // No more is certain on a processor that does other things too.
  CHECK(one.Count(Outcome::kFaster) == 0);
  CHECK(one.rows[0].result.interval.low <= one.rows[0].result.interval.high);
}

}  // namespace
}  // namespace mtmc::worker

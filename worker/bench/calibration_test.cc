// SPDX-License-Identifier: Apache-2.0
#include "worker/bench/calibration.h"

#include <catch2/catch.hpp>
#include <vector>

#include "common/testing/status_matchers.h"

namespace mtmc::worker {
namespace {

using Catch::Matchers::WithinRel;

TEST_CASE("FitLoopTime finds the line through its points", "[bench]") {
  const LoopTime line =
      FitLoopTime(std::vector<int64_t>{100, 200, 300}, std::vector<double>{3e-6, 4e-6, 5e-6});

  CHECK_THAT(line.overhead_seconds, WithinRel(2e-6, 1e-9));
  CHECK_THAT(line.seconds_per_loop, WithinRel(1e-8, 1e-9));
  CHECK(line.LoopsFor(4e-6) == 200);
}

TEST_CASE("Calibrate reaches the wanted time on a device of any speed", "[bench]") {
  const auto per_loop = GENERATE(3e-10, 2e-9, 2e-7);
  const auto overhead = GENERATE(0.0, 2e-6);

  const auto line = Calibrate(1e-4, [&](int64_t loops) -> absl::StatusOr<double> {
    return overhead + per_loop * static_cast<double>(loops);
  });

  REQUIRE_THAT(line.status(), testing::IsOk());
  CHECK_THAT(line->SecondsOf(line->LoopsFor(1e-4)), WithinRel(1e-4, 0.01));
}

TEST_CASE("A time that is a little too short for a launch is that of one loop", "[bench]") {
  const auto with_overhead = [](double seconds) {
    return Calibrate(5e-6, [=](int64_t loops) -> absl::StatusOr<double> {
      return seconds + 3e-9 * static_cast<double>(loops);
    });
  };

  const auto line = with_overhead(5.6e-6);
  REQUIRE_THAT(line.status(), testing::IsOk());
  CHECK(line->LoopsFor(5e-6) == 1);
  CHECK(line->LoopsFor(1.03 * line->SecondsOf(1)) > 50);
  CHECK(absl::IsFailedPrecondition(with_overhead(1e-5).status()));
}

TEST_CASE("Calibrate is not misled by noise between neighbouring points", "[bench]") {
  const double per_loop = 1e-8;
  // Ever faster: the host had been busy when the calibration began.
  double drift = 1.2;

  const auto line = Calibrate(1e-4, [&](int64_t loops) -> absl::StatusOr<double> {
    drift *= 0.95;
    return drift * per_loop * static_cast<double>(loops);
  });

  REQUIRE_THAT(line.status(), testing::IsOk());
  CHECK(line->LoopsFor(8e-4) > 4 * line->LoopsFor(1e-4));
}

}  // namespace
}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "common/access/rate_limit.h"

#include <catch2/catch.hpp>

#include "common/testing/fake_clock.h"

namespace mtmc::access {
namespace {

TEST_CASE("A second's calls may come at once, then one each period", "[access]") {
  testing::FakeClock clock;
  RateLimit limit(4, clock);
  for (int i = 0; i < 4; ++i) CHECK(limit.Take("alice") == absl::ZeroDuration());

  CHECK(limit.Take("alice") == absl::Milliseconds(250));
  CHECK(limit.Take("bob") == absl::ZeroDuration());
  clock.Advance(absl::Milliseconds(125));
  CHECK(limit.Take("alice") == absl::Milliseconds(125));
  clock.Advance(absl::Milliseconds(125));
  CHECK(limit.Take("alice") == absl::ZeroDuration());

  clock.Advance(absl::Hours(1));
  for (int i = 0; i < 4; ++i) CHECK(limit.Take("alice") == absl::ZeroDuration());
  CHECK(limit.Take("alice") > absl::ZeroDuration());
}

TEST_CASE("Less than one call a second still lets one go", "[access]") {
  testing::FakeClock clock;
  RateLimit limit(0.5, clock);

  CHECK(limit.Take("alice") == absl::ZeroDuration());
  CHECK(limit.Take("alice") == absl::Seconds(2));
  clock.Advance(absl::Seconds(-5));
  CHECK(limit.Take("alice") == absl::Seconds(2));
}

}  // namespace
}  // namespace mtmc::access

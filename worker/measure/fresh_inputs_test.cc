// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/fresh_inputs.h"

#include <catch2/catch.hpp>
#include <vector>

namespace mtmc::worker {

TEST_CASE("AreSlower finds a program that replays what it knows", "[measure]") {
  const std::vector<double> replayed = {10, 10, 11, 10, 12, 10, 10, 11};

  CHECK(AreSlower(std::vector<double>{30, 31, 29}, replayed));
}

TEST_CASE("AreSlower lets ordinary noise pass", "[measure]") {
  const std::vector<double> usual = {10, 10, 11, 10, 12, 10, 10, 11};

  CHECK_FALSE(AreSlower(std::vector<double>{12}, usual));
  CHECK_FALSE(AreSlower(std::vector<double>{30, 10.5, 30}, usual));
}

}  // namespace mtmc::worker

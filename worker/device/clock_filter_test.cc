// SPDX-License-Identifier: Apache-2.0
#include "worker/device/clock_filter.h"

#include <catch2/catch.hpp>

namespace mtmc::worker {

TEST_CASE("FindSteadyClocks drops samples of another clock", "[device]") {
  const std::vector<double> clocks = {1.98e9, 1.98e9, 1.50e9, 1.965e9, 1.98e9};

  CHECK(FindSteadyClocks(clocks, 2) == std::vector<bool>{true, true, false, true, true});
}

TEST_CASE("FindSteadyClocks keeps the nearest clocks when too few are steady", "[device]") {
  const std::vector<double> clocks = {1.0e9, 1.3e9, 1.98e9, 1.98e9, 1.98e9};

  CHECK(FindSteadyClocks(clocks, 4) == std::vector<bool>{false, true, true, true, true});
}

TEST_CASE("FindSteadyClocks keeps samples whose clock is unknown", "[device]") {
  CHECK(FindSteadyClocks(std::vector<double>{0, 0}, 0) == std::vector<bool>{true, true});
  CHECK(FindSteadyClocks(std::vector<double>{}, 0).empty());
}

}  // namespace mtmc::worker

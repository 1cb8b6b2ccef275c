// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/counter_rule.h"

#include <catch2/catch.hpp>

namespace mtmc::worker {
namespace {

TEST_CASE("CounterRule wants the fastest of each problem so far", "[worker]") {
  CounterRule rule;

  CHECK(rule.Wants("a", 3e-3));
  CHECK_FALSE(rule.Wants("a", 3e-3));
  CHECK_FALSE(rule.Wants("a", 4e-3));
  CHECK(rule.Wants("a", 2e-3));
  CHECK(rule.Wants("b", 9e-3));
  CHECK_FALSE(rule.Wants("a", 2.5e-3));
}

}  // namespace
}  // namespace mtmc::worker

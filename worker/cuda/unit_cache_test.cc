// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/unit_cache.h"

#include <catch2/catch.hpp>

namespace mtmc::worker {
namespace {

TEST_CASE("UnitCache keeps what was used last", "[cuda]") {
  UnitCache cache(10);
  cache.Put("a", "1234");
  cache.Put("b", "1234");
  CHECK(cache.Find("a") == "1234");

  cache.Put("c", "1234");

  CHECK(cache.Find("a") == "1234");
  CHECK_FALSE(cache.Find("b"));
  CHECK(cache.Find("c") == "1234");
  cache.Put("large", std::string(20, '5'));
  CHECK(cache.Find("large"));
  CHECK_FALSE(cache.Find("a"));
}

}  // namespace
}  // namespace mtmc::worker

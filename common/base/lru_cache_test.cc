// SPDX-License-Identifier: Apache-2.0
#include "common/base/lru_cache.h"

#include <catch2/catch.hpp>

namespace mtmc::base {
namespace {

TEST_CASE("LruCache keeps what was used last", "[base]") {
  LruCache<std::string> cache(10);
  cache.Put("a", "1234", 4);
  cache.Put("b", "1234", 4);
  CHECK(cache.Find("a") == "1234");

  cache.Put("c", "1234", 4);

  CHECK(cache.Find("a") == "1234");
  CHECK_FALSE(cache.Find("b"));
  CHECK(cache.Find("c") == "1234");
  cache.Put("large", std::string(20, '5'), 20);
  CHECK(cache.Find("large"));
  CHECK_FALSE(cache.Find("a"));
}

}  // namespace
}  // namespace mtmc::base

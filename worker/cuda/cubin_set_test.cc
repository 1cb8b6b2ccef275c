// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cubin_set.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace mtmc::worker {
namespace {

TEST_CASE("Joined cubins come apart again", "[cuda]") {
  const std::vector<CubinPart> parts = {
      {.cubin = "first", .symbols = {{"f", "unit"}, {"g", "unit"}}},
      {.cubin = std::string_view("\0second", 7), .symbols = {{"h", "h"}}},
      {.cubin = "", .symbols = {}}};
  const std::string joined = JoinCubins(parts);

  const auto found = SplitCubins(joined);

  REQUIRE(found);
  REQUIRE(found->size() == parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    CHECK((*found)[i].cubin == parts[i].cubin);
    CHECK((*found)[i].symbols == parts[i].symbols);
  }
}

TEST_CASE("What was not joined is one cubin", "[cuda]") {
  for (const char* binary : {"ELF", ""}) {
    const auto found = SplitCubins(binary);
    REQUIRE(found);
    REQUIRE(found->size() == 1);
    CHECK(found->front().cubin == binary);
    CHECK(found->front().symbols.empty());
  }
}

TEST_CASE("What was cut off or forged is no set of cubins", "[cuda]") {
  const CubinPart first{.cubin = "first", .symbols = {{"f", "unit"}}};
  const std::string one = JoinCubins({first});
  const std::string joined = JoinCubins({first, {.cubin = "second", .symbols = {{"g", "g"}}}});
  const size_t head = JoinCubins({}).size();
  for (size_t size = head + 1; size < joined.size(); ++size) {
    // At the end of the first, which is a set of one.
    CHECK(SplitCubins(std::string_view(joined).substr(0, size)).has_value() ==
          (size == one.size()));
  }
  // Numbers and sizes beyond all that follows.
  for (const size_t place : {head + 7, head + 15, one.size() + 7}) {
    std::string forged = joined;
    forged[place] = '\xff';
    CHECK_FALSE(SplitCubins(forged));
  }
}

}  // namespace
}  // namespace mtmc::worker

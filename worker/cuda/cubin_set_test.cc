// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cubin_set.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace mtmc::worker {
namespace {

using Parts = std::vector<std::string_view>;

TEST_CASE("Joined cubins come apart again", "[cuda]") {
  const std::vector<std::string> cubins = {"first", std::string("\0second", 7), "", "third"};
  const std::string joined = JoinCubins(cubins);

  const auto parts = SplitCubins(joined);

  REQUIRE(parts);
  CHECK(*parts == Parts(cubins.begin(), cubins.end()));
}

TEST_CASE("One cubin is itself", "[cuda]") {
  CHECK(JoinCubins({"ELF"}) == "ELF");
  CHECK(*SplitCubins("ELF") == Parts{"ELF"});
  CHECK(*SplitCubins("") == Parts{""});
}

TEST_CASE("What was cut off or forged is no set of cubins", "[cuda]") {
  const std::string joined = JoinCubins({"first", "second"});
  for (size_t size = JoinCubins({}).size() + 1; size < joined.size(); ++size) {
    const auto parts = SplitCubins(std::string_view(joined).substr(0, size));
    // At the end of the first, which is a set of one.
    CHECK(parts.has_value() == (size == JoinCubins({}).size() + 8 + 5));
  }
  std::string forged = joined;
  forged[JoinCubins({}).size() + 7] = '\xff';
  CHECK_FALSE(SplitCubins(forged));
}

}  // namespace
}  // namespace mtmc::worker

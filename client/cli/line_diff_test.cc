// SPDX-License-Identifier: Apache-2.0
#include "client/cli/line_diff.h"

#include <catch2/catch.hpp>

namespace mtmc::client {
namespace {

using Lines = std::vector<std::string>;

TEST_CASE("LineDiff of equal texts is empty", "[cli]") {
  CHECK(LineDiff("a\nb\nc", "a\nb\nc").empty());
}

TEST_CASE("LineDiff marks a changed line with its neighbours", "[cli]") {
  CHECK(LineDiff("a\nb\nc", "a\nx\nc") == Lines{" a", "-b", "+x", " c"});
}

TEST_CASE("LineDiff folds what is far from a change", "[cli]") {
  const Lines diff =
      LineDiff("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12", "x\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\ny");

  CHECK(diff == Lines{"-1", "+x", " 2", " 3", " 4", "@@", " 9", " 10", " 11", "-12", "+y"});
}

TEST_CASE("LineDiff of an empty text adds every line", "[cli]") {
  CHECK(LineDiff("", "a\nb") == Lines{"-", "+a", "+b"});
}

}  // namespace
}  // namespace mtmc::client

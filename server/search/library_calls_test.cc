// SPDX-License-Identifier: Apache-2.0
#include "server/search/library_calls.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

namespace mtmc::search {
namespace {

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("A program may call the library operators that it names", "[search]") {
  CHECK(LibraryCallsIn("//@ call aten::linear(x, w, None) -> h precision=tf32\n"
                       "//@ call aten::relu(h) -> y\n//@ call aten::relu(y) -> z\n") ==
        Names{"aten::linear", "aten::relu"});
  CHECK(LibraryCallsIn("aten::relu") == Names{"aten::relu"});
}

TEST_CASE("What is no library operator that may be called is left out", "[search]") {
  // Another name, in place, a view, unwritten memory, and what C++ has.
  for (const char* text : {"xaten::relu(x)", "aten::relu_(x)", "aten::view(x)", "aten::empty(x)",
                           "aten::", "::", "", "std::max(a, b)", "a::b::c", "aten:relu", "relu"}) {
    INFO(text);
    CHECK(LibraryCallsIn(text).empty());
  }
}

TEST_CASE("Every library operator is found between whatever surrounds it", "[search]") {
  std::mt19937 random(5);
  const std::string noise = " \n\t(),:;.->\"'\\{}=+\xff";
  for (const std::string& name : LibraryCalls()) {
    std::string text;
    for (int i = 0; i < 5; ++i) text += noise[random() % noise.size()];
    text += name;
    for (int i = 0; i < 5; ++i) text += noise[random() % noise.size()];
    INFO(text);
    const Names found = LibraryCallsIn(text);
    CHECK(found == Names{name});
  }
  CHECK(std::is_sorted(LibraryCalls().begin(), LibraryCalls().end()));
}

}  // namespace mtmc::search

// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/program.h"

#include <catch2/catch.hpp>

namespace mtmc::kernel {
namespace {

TEST_CASE("Variants lists every combination with the default first", "[program]") {
  const Program program{.tune = {{"BM", {64, 128}}, {"STAGES", {3, 4, 5}}}};

  const std::vector<Bindings> variants = Variants(program, 100);

  REQUIRE(variants.size() == 6);
  CHECK(variants.front() == DefaultBindings(program));
  CHECK(variants[1] == Bindings{{"BM", 64}, {"STAGES", 4}});
  CHECK(variants.back() == Bindings{{"BM", 128}, {"STAGES", 5}});
}

TEST_CASE("Variants of a program without tune parameters is the one empty binding", "[program]") {
  CHECK(Variants(Program{}, 10) == std::vector<Bindings>{Bindings{}});
}

TEST_CASE("Variants stops at its limit", "[program]") {
  const Program program{.tune = {{"A", {1, 2, 3}}, {"B", {1, 2, 3}}}};

  CHECK(Variants(program, 4).size() == 4);
  CHECK(Variants(program, 0).empty());
}

}  // namespace
}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/numbers.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace mtmc::kernel {
namespace {

std::vector<double> NumbersIn(const std::string& text, Dialect dialect = Dialect::kCuda) {
  Program program;
  program.dialect = dialect;
  program.text = text;
  return NumbersOf(program);
}

TEST_CASE("Numbers are those of the code, each once, without suffix and sign", "[program]") {
  CHECK(NumbersIn("//@ launch k grid=17 block=32 args=(x)\n"
                  "#define CAP 40\n"
                  "// 11\n"
                  "/* 12 */ const char* s = \"13\";\n"
                  "float a = -8.0f, b = 1e-4f, c = .5f, d = 0x1Fu, e = 1'000, f = 40ul;\n") ==
        std::vector<double>{1e-4, 0.5, 8, 31, 40, 1000});
}

TEST_CASE("What is no finite positive number is none", "[program]") {
  CHECK(NumbersIn("float a = 0, b = 0.0f, c = 1e999, d = 0x1p-3f, e = 0xffffffffffffffffffu;")
            .empty());
  CHECK(NumbersIn("x = 7", Dialect::kTriton).empty());
  CHECK(NumbersIn("").empty());
}

TEST_CASE("Of a table of numbers some are enough", "[program]") {
  std::string text;
  for (int i = 1; i <= 1000; ++i) text += std::to_string(i) + ", ";
  CHECK(NumbersIn(text).size() == 256);
}

}  // namespace
}  // namespace mtmc::kernel

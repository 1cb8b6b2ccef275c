// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/expression.h"

#include <catch2/catch.hpp>

namespace mtmc::kernel {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();

int64_t ValueOf(const std::string& text) {
  const std::map<std::string, int64_t, std::less<>> bindings = {{"BM", 64}, {"BN", 100}};
  return IntegerExpression::Parse(text).value().Evaluate(bindings).value();
}

TEST_CASE("IntegerExpression evaluates as C does", "[program]") {
  const auto [text, expected] = GENERATE(table<std::string, int64_t>({
      {"42", 42},
      {"-42", -42},
      {"1 + 2*3", 7},
      {"(1 + 2)*3", 9},
      {"10 - 3 - 2", 5},
      {"-7 / 2", -3},
      {"-7 % 3", -1},
      {"7 - -3", 10},
      {"-BM", -64},
      {"-(BM + 1)*2", -130},
      {"(4096 + BN - 1) / BN", 41},
      {"ceil_div(4096, BN)", 41},
      {"ceil_div(-7, 2)", -3},
      {"min(BM, BN) + max(1, 2)", 66},
      {"-9223372036854775808", kLowest},
      {"-9223372036854775808 % -1", 0},
  }));
  CAPTURE(text);

  CHECK(ValueOf(text) == expected);
}

TEST_CASE("IntegerExpression prints a text that parses to the same value", "[program]") {
  const std::string text =
      GENERATE("1 - (2 - 3)", "8/(4/2)", "(1 + BM)*-3", "-(BM % 7)", "ceil_div(BM + 1, 2)*BN",
               "min(1, max(BM, -2)) - (BN)", "2*(3 + 4)*5 % 6", "-9223372036854775808");
  CAPTURE(text);

  const std::string printed = IntegerExpression::Parse(text).value().text();

  CAPTURE(printed);
  CHECK(ValueOf(printed) == ValueOf(text));
  CHECK(IntegerExpression::Parse(printed).value().text() == printed);
}

TEST_CASE("IntegerExpression refuses what is no expression", "[program]") {
  const std::string text =
      GENERATE(as<std::string>{}, "", " ", "1 +", "(1", "1)", "1 2", "a b", "0x10", "1.5",
               "9223372036854775808", "min(1)", "min 1", "min(1, 2, 3)", "f(1)", "&BM", "1 // 2",
               "\xff", std::string(1, '\0'));
  CAPTURE(text);

  CHECK(IntegerExpression::Parse(text).status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("IntegerExpression bounds nesting and length", "[program]") {
  const std::string nested = std::string(100'000, '(') + "1" + std::string(100'000, ')');
  const std::string signs = std::string(100'000, '-') + "1";
  std::string sum = "1";
  for (int i = 0; i < 100'000; ++i) sum += "+1";

  CHECK_FALSE(IntegerExpression::Parse(nested).ok());
  CHECK_FALSE(IntegerExpression::Parse(signs).ok());
  CHECK_FALSE(IntegerExpression::Parse(sum).ok());
  CHECK(IntegerExpression::Parse("((((((((1))))))))").ok());
}

TEST_CASE("IntegerExpression reports what cannot be computed", "[program]") {
  const std::string text =
      GENERATE("UNBOUND", "1 / 0", "1 % 0", "ceil_div(1, 0)", "9223372036854775807 + 1",
               "-9223372036854775808 / -1", "-9223372036854775808 - 1", "4611686018427387904*2");
  CAPTURE(text);

  CHECK_FALSE(IntegerExpression::Parse(text).value().Evaluate({}).ok());
}

TEST_CASE("IntegerExpression lists the names it needs once", "[program]") {
  const IntegerExpression expression = IntegerExpression::Parse("BN*(BM + min(BN, 3))").value();

  CHECK(expression.names() == std::vector<std::string>{"BM", "BN"});
}

}  // namespace
}  // namespace mtmc::kernel

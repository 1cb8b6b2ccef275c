// SPDX-License-Identifier: Apache-2.0

// Any bytes may be parsed; what parses evaluates or fails cleanly, and prints
// to a text of equal value.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kernel/program/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using mtmc::kernel::IntegerExpression;
  const auto expression = IntegerExpression::Parse({reinterpret_cast<const char*>(data), size});
  if (!expression.ok()) return 0;
  const std::map<std::string, int64_t, std::less<>> bindings = {{"BM", 64}, {"BN", -3}, {"N", 0}};
  const auto again = IntegerExpression::Parse(expression->text());
  if (!again.ok()) std::abort();
  const auto value = expression->Evaluate(bindings);
  const auto same = again->Evaluate(bindings);
  if (value.ok() != same.ok() || (value.ok() && *value != *same)) std::abort();
  return 0;
}

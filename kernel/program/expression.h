// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mtmc::kernel {

// An integer expression of a plan, such as `(4096 + BN - 1) / BN`: literals,
// tune parameters, + - * / % , parentheses, min(a, b), max(a, b), ceil_div(a, b).
// Division truncates. Value type; cheap to copy.
class IntegerExpression {
 public:
  // The literal `value`.
  IntegerExpression(int64_t value = 0);  // NOLINT(google-explicit-constructor): literals read well

  // INVALID_ARGUMENT with the column when `text` is not an expression or is
  // nested deeper than 64 or has more than 512 values and operators.
  static absl::StatusOr<IntegerExpression> Parse(std::string_view text);

  // INVALID_ARGUMENT on an unbound name, a division by zero or an overflow of
  // 63 bits.
  absl::StatusOr<int64_t> Evaluate(
      const std::map<std::string, int64_t, std::less<>>& bindings) const;

  // Names that Evaluate needs, sorted, each once.
  std::vector<std::string> names() const;

  // Parses back to an equal expression.
  std::string text() const;

  // Hidden in the source.
  struct Node;

 private:
  explicit IntegerExpression(std::shared_ptr<const Node> node);

  // Never null. Shared because nodes are immutable.
  std::shared_ptr<const Node> node_;
};

}  // namespace mtmc::kernel

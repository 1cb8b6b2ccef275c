// SPDX-License-Identifier: Apache-2.0
#include "kernel/algebra/scalar_key.h"

#include <cstdio>

namespace mtmc::kernel {
namespace {

void AppendKey(const Scalar& scalar, std::string& key) {
  switch (scalar.kind) {
    case Scalar::Kind::kLiteral: {
      if (IsFloating(scalar.type)) {
        char digits[40];
        std::snprintf(digits, sizeof(digits), "%a", scalar.literal);
        key += digits;
        key += scalar.type == DataType::kF64 ? 'd' : 'f';
      } else {
        key += std::to_string(IntegerOf(scalar));
        if (scalar.type != DataType::kI64) key += ToText(scalar.type);
      }
      return;
    }
    case Scalar::Kind::kAxis:
      key += 'a';
      key += std::to_string(scalar.axis);
      return;
    case Scalar::Kind::kRead:
      key += scalar.tensor;
      break;
    case Scalar::Kind::kCast:
      key += '!';
      key += ToText(scalar.type);
      break;
    case Scalar::Kind::kOperator:
      key += '#';
      key += std::to_string(static_cast<int>(scalar.op));
      break;
  }
  key += '(';
  for (const ScalarPtr& operand : scalar.operands) {
    AppendKey(*operand, key);
    key += ',';
  }
  key += ')';
}

}  // namespace

std::string KeyOf(const ScalarPtr& scalar) {
  std::string key;
  AppendKey(*scalar, key);
  return key;
}

int64_t IntegerOf(const Scalar& literal) {
  return literal.integer != 0 ? literal.integer : static_cast<int64_t>(literal.literal);
}

}  // namespace mtmc::kernel

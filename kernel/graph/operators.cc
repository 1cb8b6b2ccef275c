// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/operators.h"

#include <algorithm>

namespace mtmc::kernel {
namespace {

constexpr Operator kOperators[] = {
#include "kernel/graph/operators.inc"
};

}  // namespace

std::span<const Operator> Operators() { return kOperators; }

const Operator* FindOperator(std::string_view name) {
  const std::span<const Operator> all = Operators();
  const auto found = std::lower_bound(
      all.begin(), all.end(), name,
      [](const Operator& row, std::string_view wanted) { return row.name < wanted; });
  return found != all.end() && found->name == name ? &*found : nullptr;
}

std::string_view WithoutOverload(std::string_view op) { return op.substr(0, op.find('.')); }

bool IsConvolution(std::string_view op) { return op.find("conv") != std::string_view::npos; }

}  // namespace mtmc::kernel

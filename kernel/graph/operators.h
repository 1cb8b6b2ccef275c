// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace mtmc::kernel {

// What a program may do with an ATen operator, all overloads alike.
struct Operator {
  enum class Use {
    // Computes new tensors from its arguments and nothing else: it reads no file,
    // keeps no state between calls, sees no memory that it was not given and
    // returns nothing that was not computed.
    kCallable,
    // The same, but for the generator of random numbers. The first such call of a
    // plan says which seed the generator starts from.
    kRandom,
    // Returns the memory of its argument; `copy` is the operator that returns the
    // same elements in new memory, and may be called.
    kView,
    // Returns memory that nobody has written. Never called.
    kUnwritten,
  };

  // With its namespace, without overload, such as `aten::linear`.
  std::string_view name;
  Use use = Use::kCallable;
  // Empty where there is none.
  std::string_view copy;

  bool is_callable() const { return use == Use::kCallable || use == Use::kRandom; }
};

// All operators of the installed PyTorch that have a use, sorted by name. What is
// not here works in place, is internal, or is no computation on dense real
// tensors. scripts/operators writes the table and knows the rule.
std::span<const Operator> Operators();

// The one of this name; null when it has no use.
const Operator* FindOperator(std::string_view name);

// `aten::linear` of `aten::linear.default`.
std::string_view WithoutOverload(std::string_view op);

// Whether it is a convolution: PyTorch's defaults let a vendor compute those in TF32.
bool IsConvolution(std::string_view op);

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace mtmc::policy {

// What an operator costs, as far as a macro decision needs to know.
enum class OpKind {
  // Each output element from the elements at the same place.
  kPointwise,
  // Many elements to one: sums, norms, softmax, scans.
  kReduction,
  // Sum of products: matrix products, convolutions, attention.
  kContraction,
  // A small neighbourhood to one element: pooling.
  kWindow,
  // No arithmetic: views, copies, concatenation.
  kMovement,
};

// Kind of a qualified ATen operator such as `aten::gelu.default`. An unknown
// operator is pointwise, the kind with the weakest consequences.
OpKind ClassifyOp(std::string_view op);

}  // namespace mtmc::policy

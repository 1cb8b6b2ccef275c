// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "kernel/graph/graph.h"
#include "kernel/rewrite/graph_edit.h"

namespace mtmc::kernel {

// The factors of a product of matrices [..., M, K] and [..., K, N].
struct ProductNode {
  std::string left;
  std::string right;
};

// Of `matmul`, `mm`, `bmm` and `addmm`, whatever their shapes; absent for any other node.
std::optional<ProductNode> FindFactors(const GraphNode& node);

// A product alone, with equal batches; absent for any other node, products that broadcast among
// them.
std::optional<ProductNode> FindProduct(const GraphUses& uses, const GraphNode& node);

}  // namespace mtmc::kernel

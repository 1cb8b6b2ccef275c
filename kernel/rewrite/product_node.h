// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "kernel/graph/graph.h"
#include "kernel/rewrite/graph_edit.h"

namespace mtmc::kernel {

// A product of matrices [..., M, K] and [..., K, N] with equal batches.
struct ProductNode {
  std::string left;
  std::string right;
};

// Absent for any other node, products that broadcast among them.
std::optional<ProductNode> FindProduct(const GraphUses& uses, const GraphNode& node);

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kernel/rewrite/edit_builder.h"
#include "kernel/rewrite/graph_edit.h"
#include "kernel/rewrite/pooling.h"

namespace mtmc::kernel {

// Multiplications of the products and convolutions that a rewrite passes, before and after it.
struct Products {
  double before = 0;
  double after = 0;
};

// Writes a pooling of a value as far up as it can be moved: through linear maps into the
// factors of products and convolutions. For one edit.
class PoolingMover {
 public:
  PoolingMover(const GraphUses& uses, EditBuilder& builder) : uses_(uses), builder_(builder) {}

  // The pooled value.
  std::string Move(const std::string& value, const Pooling& pooling);

  const Products& products() const { return products_; }

 private:
  // The pooled result of a node; absent where nothing can be moved past it.
  std::optional<std::string> MovePast(const GraphNode& node, const Pooling& pooling);
  std::optional<std::string> PastScale(const GraphNode& node, const Pooling& pooling);
  std::optional<std::string> PastSum(const GraphNode& node, const Pooling& pooling);
  std::optional<std::string> PastAxes(const GraphNode& node, const Pooling& pooling);
  std::optional<std::string> PastLinear(const GraphNode& node, const Pooling& pooling);
  std::optional<std::string> PastMatrixProduct(const GraphNode& node, const Pooling& pooling);
  std::optional<std::string> PastConvolution(const GraphNode& node, const Pooling& pooling);

  const GraphUses& uses_;
  EditBuilder& builder_;
  Products products_;
  // By value and pooling: what is read twice is moved once.
  std::map<std::string, std::string> moved_;
};

}  // namespace mtmc::kernel

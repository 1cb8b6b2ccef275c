// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel/rewrite/edit_builder.h"
#include "kernel/rewrite/graph_edit.h"

namespace mtmc::kernel {

// Sums or means of windows along the axes of a tensor, without padding: what `sum`, `mean` and
// average pooling have in common. All axes stay.
struct Pooling {
  // Result `o` is made from the elements `o * step` to `o * step + window - 1`.
  struct Axis {
    int64_t window = 1;
    int64_t step = 1;
    int64_t outputs = 1;

    // Whether each element is its own result.
    bool is_plain() const { return window == 1 && step == 1; }
  };

  // One a dimension.
  std::vector<Axis> axes;
  bool is_mean = false;

  // One that changes nothing.
  static Pooling Plain(const std::vector<int64_t>& shape, bool is_mean);

  bool is_plain() const;
  // Whether all windows lie within a tensor of this shape.
  bool Fits(const std::vector<int64_t>& shape) const;
  // The result for ones: 1 of means, the size of a window of sums.
  double gain() const;
};

// A node that pools its input.
struct PoolingNode {
  std::string input;
  Pooling pooling;
};

// Absent for any other node.
std::optional<PoolingNode> FindPooling(const GraphUses& uses, const GraphNode& node);

// Adds the nodes that pool a value, which the windows are required to fit.
std::string Pool(EditBuilder& builder, const std::string& value, const Pooling& pooling);

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel/graph/graph.h"
#include "kernel/rewrite/graph_edit.h"

namespace mtmc::kernel {

// A convolution, transposed or not, with a batch axis and a number for each padding.
struct ConvolutionNode {
  std::string input;
  // [O, C / groups, ...], or [C, O / groups, ...] of a transposed one.
  std::string weight;
  // Empty where there is none.
  std::string bias;
  std::vector<int64_t> stride;
  std::vector<int64_t> padding;
  // Of a transposed one.
  std::vector<int64_t> output_padding;
  std::vector<int64_t> dilation;
  int64_t groups = 1;
  bool is_transposed = false;

  // Axes besides batch and channels.
  size_t dims() const { return stride.size(); }
};

// Absent for any other node, and for one whose arguments have another form.
std::optional<ConvolutionNode> FindConvolution(const GraphUses& uses, const GraphNode& node);

}  // namespace mtmc::kernel

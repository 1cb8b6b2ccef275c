// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/view/group_view.h"

namespace mtmc::kernel {

// A contraction as a batch of matrix products c[b, m, n] = sum over k of
// a[b, m, k] * b[b, k, n]: which of its output axes only the left factor uses
// (m), only the right one (n), or both or neither (batch). A convolution is one
// too: its pixels are m or n, its window and channels k.
struct ContractionSpace {
  const Loop* loop = nullptr;
  std::vector<int> batch_axes;
  std::vector<int> m_axes;
  std::vector<int> n_axes;
  std::vector<int> k_axes;
  int64_t batch = 1;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;

  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }
};

ContractionSpace SpaceOf(const Loop& loop);

// Loop axes as expressions of the writer: each role's flat index, taken apart.
std::vector<ScalarPtr> AxesOf(const ContractionSpace& space, const ScalarPtr& batch,
                              const ScalarPtr& m, const ScalarPtr& n, const ScalarPtr& k,
                              const std::vector<int64_t>& extents);

// Work of the contraction, and of the maps in its factors, each of which is evaluated so many
// times for an element: as GroupCost counts operations.
double OperationsOf(const GroupView& view, const ContractionSpace& space, double left_times,
                    double right_times);

// The only contraction of the group; null when there is none or are several.
const Loop* FindContraction(const GroupView& view);

}  // namespace mtmc::kernel

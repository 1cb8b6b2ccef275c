// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/loops/node_lowering.h"

namespace mtmc::kernel {

// What a softmax knows of each row: the largest element and the sum of
// exp(x - max), both with extent 1 along the row's dimension.
struct SoftmaxRows {
  Elements max;
  Elements sum;
};

// Adds the reduction, in one sweep, to the node's loops.
SoftmaxRows ReduceSoftmaxRows(NodeLowering& node, const Elements& x, int dim);

// exp(x - max) / sum, and its logarithm, along `dim`.
Elements SoftmaxOf(NodeLowering& node, const Elements& x, int dim);
Elements LogSoftmaxOf(NodeLowering& node, const Elements& x, int dim);

}  // namespace mtmc::kernel

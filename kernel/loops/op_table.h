// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

#include "kernel/loops/node_lowering.h"

namespace mtmc::kernel {

// Lowerings by operator name without namespace and overload (`conv2d`). Each
// class of operators lies in the file of that name and adds its own.
using LowerNode = std::function<bool(NodeLowering& node)>;
using OpTable = std::map<std::string, LowerNode, std::less<>>;

// All of them. Thread-safe.
const OpTable& Lowerings();

void AddPointwiseOps(OpTable& table);    // arithmetic, comparisons, casts
void AddActivationOps(OpTable& table);   // nonlinearities of torch.nn.functional
void AddViewOps(OpTable& table);         // same elements, other indices
void AddArrangementOps(OpTable& table);  // cat, pad, flip, tril, upsampling
void AddCreationOps(OpTable& table);     // full, arange, eye
void AddReductionOps(OpTable& table);    // sum, mean, max, var, norm, argmax
void AddSoftmaxOps(OpTable& table);      // softmax, log_softmax, logsumexp
void AddNormOps(OpTable& table);         // layer, group, instance, batch, RMS norm
void AddLossOps(OpTable& table);         // criteria of torch.nn.functional
void AddProductOps(OpTable& table);      // matrix products, linear, einsum
void AddConvolutionOps(OpTable& table);  // convolutions and transposed ones
void AddWindowOps(OpTable& table);       // pooling
void AddScanOps(OpTable& table);         // cumulative sum and product
void AddIndexOps(OpTable& table);        // embedding, gather, index_select
void AddAttentionOps(OpTable& table);    // scaled dot product attention

}  // namespace mtmc::kernel

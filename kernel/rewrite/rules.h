// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "kernel/graph/graph.h"
#include "kernel/rewrite/graph_edit.h"

namespace mtmc::kernel {

// The rules of `rewrite.h`, each in the file of its name. All are pure functions.

// Of the multiplications, what may be left of them for a rewrite to be worth a trial.
inline constexpr double kMostLeft = 0.75;

// A reduction, softmax or running sum over axes of one element.
std::optional<GraphEdit> FindOneElement(const GraphUses& uses, const GraphNode& node);

// `v - v`.
std::optional<GraphEdit> FindZeroDifference(const GraphUses& uses, const GraphNode& node);

// A matrix product in which one factor is made from its diagonal.
std::optional<GraphEdit> FindDiagonalProduct(const GraphUses& uses, const GraphNode& node);

// A chain of two matrix products, or of two linear layers, in the other order: (a b) c = a (b c).
// Applies where it leaves at most kMostLeft of the multiplications.
std::optional<GraphEdit> FindReassociation(const GraphUses& uses, const GraphNode& node);

// The upper or lower triangle of a large matrix product: blocks of rows, each multiplied with the
// columns that it keeps.
std::optional<GraphEdit> FindTriangle(const GraphUses& uses, const GraphNode& node);

// A transposed convolution as a plain one of stride 1: each remainder of a place by the stride is a
// channel of its own, which meets a part of the taps. With stride 1 over three axes alone.
std::optional<GraphEdit> FindPlainConvolution(const GraphUses& uses, const GraphNode& node);

// A convolution, transposed or not, whose input, weight and result have their channels last in
// memory.
std::optional<GraphEdit> FindChannelsLast(const GraphUses& uses, const GraphNode& node);

// A pooling of what such a convolution is part of, in the same way.
std::optional<GraphEdit> FindPoolingChannelsLast(const GraphUses& uses, const GraphNode& node);

// A sum, mean or average pooling of what linear maps make out of products and convolutions:
// sum_j sum_k a[i, k] b[k, j] = sum_k a[i, k] sum_j b[k, j], and the same for windows of j, for
// rows of a, and for the positions of a convolution. Applies where it leaves at
// most kMostLeft of the multiplications.
std::optional<GraphEdit> FindReduceFirst(const GraphUses& uses, const GraphNode& node);

}  // namespace mtmc::kernel

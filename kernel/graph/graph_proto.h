// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "kernel/graph/graph.h"

namespace mtmc::v1 {
class Graph;
class TensorType;
}  // namespace mtmc::v1

namespace mtmc::kernel {

// Checks and converts a traced graph. INVALID_ARGUMENT names the first value
// that breaks a rule of `graph.h`; strides are dropped because programs see
// dense tensors only. The digest is taken as it is: it is the writer's.
absl::StatusOr<Graph> FromProto(const v1::Graph& proto);

// INVALID_ARGUMENT for an unset element type, a negative extent, or more bytes
// than 63 bits count.
absl::StatusOr<TensorType> FromProto(const v1::TensorType& proto);

// FromProto(ToProto(graph)) equals `graph`.
v1::Graph ToProto(const Graph& graph);
v1::TensorType ToProto(const TensorType& type);

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/repeated_field.h>

#include <vector>

#include "absl/status/statusor.h"
#include "kernel/graph/graph.h"
#include "kernel/graph/structure.h"

namespace mtmc::v1 {
class Structure;
}

namespace mtmc::kernel {

// What the forward pass of `graph` returns. INVALID_ARGUMENT when it is nested more than 16
// deep, names other than user outputs and inputs of the graph, leaves a user output out, or
// has a class or field name that is not one in Python.
absl::StatusOr<Structure> ResultFromProto(const v1::Structure& proto, const Graph& graph);

// What it takes, by position. INVALID_ARGUMENT when it is nested too deep, or does not name
// every tensor argument of the graph and nothing else.
absl::StatusOr<std::vector<Structure>> ArgumentsFromProto(
    const google::protobuf::RepeatedPtrField<v1::Structure>& protos, const Graph& graph);

void StructureToProto(const Structure& structure, v1::Structure& proto);

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/engine/engine.h"
#include "kernel/graph/graph.h"

// A small graph and what is asked of its actions. For the tests of this folder.
namespace mtmc::kernel::testing {

// Where the lines of the graph's nodes stand.
extern const char kSource[];

GraphArgument ValueOf(const std::string& name, const std::string& value);

// y = relu((x @ w) * 2) + 1
Graph MakeGraph(int64_t rows = 64);

EngineOptions CudaOptions(StartMapping start = StartMapping::kNaive);

std::vector<std::string> TextsOf(const std::vector<EngineAction>& actions);

bool Has(const std::vector<std::string>& texts, const std::string& text);

}  // namespace mtmc::kernel::testing

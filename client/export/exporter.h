// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mtmc::v1 {
class Graph;
}

namespace mtmc::client {

// A winner with everything that the exported file must hold.
struct ExportInput {
  // The user's Python source, embedded unchanged.
  std::string problem_source;
  // Program text of the candidate.
  std::string program;
  // Chosen values of its `tune` parameters; empty takes the defaults.
  std::map<std::string, int64_t> tuned;
  // Which attribute of the model each `weight` is, and each output's kind.
  const v1::Graph* graph = nullptr;
  // Sentences for the head of the file: how it differs from the model.
  std::vector<std::string> remarks;
  // One line for the head of the file: job, candidate, device, speedup.
  std::string provenance;
};

// A Python file with a class `ModelNew` that has the constructor, parameters and
// outputs of the user's `Model`, and runs the program in plain PyTorch with no
// mtmc process: CUDA through `cuda.bindings`, OpenCL through `pyopencl`.
// INVALID_ARGUMENT when the program does not parse or binds to what the graph
// does not have.
absl::StatusOr<std::string> ExportPython(const ExportInput& input);

}  // namespace mtmc::client

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "mtmc/v1/evaluation.pb.h"
#include "mtmc/v1/problem.pb.h"

namespace mtmc::worker {

// One evaluation that `mtmc-evaluate` is asked for.
struct ManifestEntry {
  // For people; the program's file name unless the manifest has one.
  std::string name;
  // Paths of the problem and of the program's text.
  std::string problem_path;
  std::string program_path;
  // Without digests: those are of the files.
  v1::Problem problem;
  v1::EvaluationOptions options;
  std::vector<std::string> allowed_calls;
};

// Reads a manifest: one JSON object per line, empty lines skipped,
//
//   {"problem": "p.py", "program": "a.cu", "precision": "tf32",
//    "options": {"hidden_seeds": 3}, "allowed_calls": ["aten::mm"], "name": "a"}
//
// `problem` and `program` are required. `options` is EvaluationOptions in
// protobuf JSON. `seed`, `randomize_identity_parameters`, `fixed` and `nonfinite` are
// those of Problem. INVALID_ARGUMENT names the line and what is wrong with it.
absl::StatusOr<std::vector<ManifestEntry>> ParseManifest(std::string_view text);

}  // namespace mtmc::worker

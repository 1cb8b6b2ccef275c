// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "mtmc/v1/evaluation.pb.h"

namespace mtmc::client {

// `eager`, `eager TF32`, ...
std::string BaselineName(v1::Baseline baseline);

// Tells what an evaluation found, apart from its profile: why it failed, which precision
// classes hold, on what they were judged, how many of the timed executions were checked, in
// what isolation, and how the times compare. Nothing of what is not there.
void PrintEvaluation(const v1::Evaluation& evaluation, std::ostream& out);

// Headers of a table of comparisons, and a row of it: `comparison` with the program that
// `measurement` is of.
std::vector<std::string> ComparisonHeaders();
std::vector<std::string> ComparisonCells(const v1::Comparison& comparison,
                                         const v1::Measurement& measurement);

}  // namespace mtmc::client

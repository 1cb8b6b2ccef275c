// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/profile/metric_table.h"

namespace mtmc::policy {

// Kind of optimization, as in `mtmc.v1.Action.Type`.
enum class ActionType {
  kFuse,
  kTile,
  kReorder,
  kPipeline,
  kVectorize,
  kTensorize,
  kSplit,
  kSimplify,
  kLibrary,
  kCapture,
  kTune,
  kFixBuild,
  kFixLaunch,
  kFixResult,
  kStop,
};

// What to do and where. A value.
struct Action {
  ActionType type = ActionType::kStop;
  // Kernel groups and graph nodes of the region, by name.
  std::vector<std::string> kernels;
  std::vector<std::string> nodes;
  // Choices within the type, such as `precision` to `tf32`.
  std::map<std::string, std::string> arguments;
  // Stable text; equal texts are equal actions of one program.
  std::string text;
};

// One operation of the traced reference.
struct GraphOp {
  std::string name;
  // Qualified operator with overload, such as `aten::conv2d.default`.
  std::string op;
  // Names of the values it reads and makes.
  std::vector<std::string> operands;
  std::vector<std::string> results;
  // Size of all results together.
  int64_t result_bytes = 0;
  // One readable line, such as `gelu: f32[8,16] = aten::gelu(x, "none")`.
  std::string listing;
};

// What the device can do. A rate of 0 is unknown.
struct DeviceRates {
  std::string product;
  // True for a CUDA device, whose plan can be captured as one graph.
  bool is_cuda = false;
  bool has_library_calls = false;
  int compute_units = 0;
  double bytes_per_second = 0;
  double fp32_flops_per_second = 0;
  double tf32_flops_per_second = 0;
};

// Device time of one launch or library call.
struct KernelTime {
  std::string kernel;
  double seconds = 0;
  // Part of the whole plan's device time, 0 to 1.
  double share_ratio = 0;
  // Blocks in its grid; 0 if unknown.
  int64_t blocks = 0;
  // Counters under the names of `common/profile`; empty where there are none.
  profile::Values metrics = {};
};

// What the last evaluation of the program said. Every number may be absent:
// a failed candidate has no time, a host without counters has no profile.
struct EvaluationSummary {
  std::optional<double> median_seconds;
  std::optional<double> speedup;
  // `memory`, `compute`, `latency`, or empty.
  std::string limit;
  std::optional<double> speed_of_light_ratio;
  std::string profile_text;
  // Counters of the whole plan; empty where there are none.
  profile::Values metrics;
  std::vector<KernelTime> kernels;
  // Set when the program failed: the action type that repairs it, and why.
  std::optional<ActionType> repair;
  std::string failure;
};

// One earlier step of the rollout.
struct Step {
  std::string action;
  // `faster`, `same`, `slower`, `wrong` or `failed`.
  std::string outcome;
  std::optional<double> speedup;
};

// How close results must be to the fp64 reference.
enum class PrecisionClass { kStrict, kKernelBench, kTf32, kHalf };

// What the macro policy sees: the problem, the program, its evaluation, the
// device and the steps so far. A value, free of wire types.
struct SearchState {
  // In execution order; results of the last ones leave the graph.
  std::vector<GraphOp> ops;
  // Inputs and outputs, one readable line each.
  std::vector<std::string> signature;
  // Program text with its launch plan.
  std::string program;
  EvaluationSummary evaluation;
  DeviceRates device;
  // Oldest first.
  std::vector<Step> history;
  int remaining_steps = 0;
  // Fewest bytes that any implementation moves.
  int64_t minimum_bytes = 0;
  // Operations of matrix products and convolutions.
  int64_t contraction_flops = 0;
  PrecisionClass precision = PrecisionClass::kKernelBench;
};

}  // namespace mtmc::policy

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/program/program.h"

namespace mtmc::kernel {

// Which template prints a kernel group.
enum class FamilyKind {
  kPointwise,      // maps over one space, data movement included
  kReduction,      // reductions over the same axes, maps before and after
  kNormalization,  // reductions and maps over the full space: softmax, norms
  kContraction,    // one sum of products, maps as prologue and epilogue
  kWindow,         // reductions over a small window: pooling
  kScan,           // running combinations
  kLibrary,        // one vendor call
};

using Knobs = std::map<std::string, int64_t, std::less<>>;

// Graph nodes that one family computes together, in one kernel or few.
struct KernelGroup {
  // C identifier, unique in the schedule; names the kernels.
  std::string name;
  // Graph nodes in definition order.
  std::vector<std::string> nodes;
  FamilyKind family = FamilyKind::kPointwise;
  // The family's choices, such as `block` to 256. A missing knob has the
  // family's default for the device.
  Knobs knobs;
  // For kLibrary.
  LibraryCall::Precision precision = LibraryCall::Precision::kDefault;
};

// The built-in engine's structured form of a program: a partition of the graph
// into kernel groups with their knobs. With the graph and the dialect it
// determines the program text completely. Value type.
struct Schedule {
  // In execution order.
  std::vector<KernelGroup> groups;
  bool has_capture = false;
  // Knobs that the worker sweeps: `group.knob` to values.
  std::map<std::string, std::vector<int64_t>, std::less<>> tune;

  const KernelGroup* FindGroup(std::string_view name) const;
};

// Text form; ParseSchedule(ToText(s)) equals s. One line per group:
// `group softmax_1 family=normalization nodes=mul,softmax block=256 vector=4`.
std::string ToText(const Schedule& schedule);
absl::StatusOr<Schedule> ParseSchedule(std::string_view text);

}  // namespace mtmc::kernel

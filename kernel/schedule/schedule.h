// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/program/program.h"

namespace mtmc::kernel {

using Knobs = std::map<std::string, int64_t, std::less<>>;

// Graph nodes that one template computes together, in one kernel or few.
struct KernelGroup {
  // C identifier, unique in the schedule; names the kernels.
  std::string name;
  // Graph nodes in definition order.
  std::vector<std::string> nodes;
  // Name of the template that prints it (`kernel/templates/template_registry.h`).
  std::string template_name;
  // The template's choices, such as `block` to 256. A missing knob has the
  // template's default for the device.
  Knobs knobs;
  // For templates that print calls.
  LibraryCall::Precision precision = LibraryCall::Precision::kDefault;

  bool operator==(const KernelGroup&) const = default;
};

// A change of the graph by algebra (`kernel/rewrite/rewrite.h`), at a node of what
// the steps before it have left.
struct RewriteStep {
  std::string rewrite;
  std::string node;

  bool operator==(const RewriteStep&) const = default;
};

// The built-in engine's structured form of a program: rewrites of the graph, and a
// partition of what they give into kernel groups with their knobs. With the graph
// and the dialect it determines the program text completely. Value type.
struct Schedule {
  // In the order in which they are applied.
  std::vector<RewriteStep> rewrites;
  // In execution order.
  std::vector<KernelGroup> groups;
  bool has_capture = false;
  // Knobs that the worker sweeps: `group.knob` to values.
  std::map<std::string, std::vector<int64_t>, std::less<>> tune;

  // The swept knobs of one group, by the knob's name alone.
  std::map<std::string, std::vector<int64_t>, std::less<>> TuneOf(std::string_view group) const;

  bool operator==(const Schedule&) const = default;
};

// Text form; ParseSchedule(ToText(s)) equals s. One line per rewrite, then per
// group, then the swept knobs, then `capture`:
//
//   rewrite reduce_first node=mean
//   group softmax_1 template=row nodes=mul,softmax block=256 vector=4
//   tune softmax_1.block=128,256
//
// ParseSchedule gives INVALID_ARGUMENT for anything else, for a group without a
// template or nodes, for a node or group that stands twice and for a tune line
// without its group; it knows neither the graph nor rewrites and templates.
std::string ToText(const Schedule& schedule);
absl::StatusOr<Schedule> ParseSchedule(std::string_view text);

// SHA-256 of the text form, in hex.
std::string DigestOf(const Schedule& schedule);

}  // namespace mtmc::kernel

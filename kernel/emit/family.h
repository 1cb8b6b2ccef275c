// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/graph/graph.h"
#include "kernel/loops/loop.h"
#include "kernel/program/program.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::kernel {

// What an emitter may know about a device.
struct EmitTarget {
  Dialect dialect = Dialect::kOpenCl;
  int64_t max_threads_per_block = 1024;
  int64_t shared_bytes_per_block = 48 * 1024;
  int64_t compute_units = 1;
  // Threads in lockstep; 1 on a CPU device.
  int64_t warp_size = 32;
  int64_t vector_bytes = 16;
  int64_t cache_bytes = 0;
};

// The part of a nest that one kernel group computes.
struct GroupView {
  const Graph* graph = nullptr;
  const LoopNest* nest = nullptr;
  const KernelGroup* group = nullptr;
  // Loops of the group's nodes, and of the free movement nodes (`group_view.h`) that they read
  // through, in definition order.
  std::vector<const Loop*> loops;
  // Values read from outside, in order of first use.
  std::vector<std::string> inputs;
  // Values that other groups or the caller read, in definition order.
  std::vector<std::string> outputs;
};

// One kernel or library call of an emitted group.
struct EmittedStep {
  Step step;
  // Device source of the kernel with its comment; empty for a library call.
  std::string source;
  // Helper functions it needs, by the names of `device_functions.h`.
  std::set<std::string> functions;
};

struct Emission {
  // Scratch tensors between the group's own steps.
  std::vector<Tensor> buffers;
  std::vector<EmittedStep> steps;
};

// A change of knobs that an action of this family stands for.
struct KnobMove {
  // `tile`, `vectorize`, `reorder` or `split`.
  std::string action;
  // Short, such as `to 128x64 blocks with 8x4 micro-tiles`.
  std::string text;
  Knobs knobs;
};

// One value range of a knob that `tune` may sweep.
struct KnobSweep {
  std::string knob;
  std::vector<int64_t> values;
};

// A kernel template: prints both dialects from one description. Implementations
// are stateless and thread-safe; one file each, registered in `families.cc`.
class Family {
 public:
  virtual ~Family() = default;
  virtual FamilyKind kind() const = 0;
  // Whether Emit can print this group as one unit.
  virtual bool Accepts(const GroupView& view) const = 0;
  // A complete set of knobs that is legal on the device: naive, not best.
  virtual Knobs DefaultKnobs(const GroupView& view, const EmitTarget& target) const = 0;
  // Legal single steps from the group's present knobs, best bets first.
  virtual std::vector<KnobMove> Moves(const GroupView& view, const EmitTarget& target) const = 0;
  // Knobs worth sweeping, present value first. At most 32 combinations.
  virtual std::vector<KnobSweep> Sweeps(const GroupView& view, const EmitTarget& target) const = 0;
  // REQUIRES: Accepts(view), and the group's knobs are complete: DefaultKnobs for the target
  // overlaid with the schedule's. A knob `k` listed in `tuned` is printed as the macro GROUP_K
  // instead of its value.
  virtual absl::StatusOr<Emission> Emit(const GroupView& view, const EmitTarget& target,
                                        const std::vector<std::string>& tuned) const = 0;
};

// Family of that kind; never null.
const Family& FamilyOf(FamilyKind kind);

}  // namespace mtmc::kernel

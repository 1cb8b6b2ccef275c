// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "kernel/action/action_space.h"
#include "kernel/action/partition.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::kernel {

// How the operations of a graph are mapped before any action.
enum class StartMapping {
  // What eager does, and better where nothing can be lost: vendor calls for what
  // has no better form, templates with fitting knobs for the rest, neighbours
  // joined where that only saves traffic; captured on CUDA where launches would show.
  kEager,
  // The same with products in FP32 throughout, without the TF32 that a vendor may choose for
  // convolutions: for networks that magnify what it rounds.
  kIeee,
  // The same with products on tensor cores wherever a template may do that in the precision of
  // FP32 and faster; CUDA alone.
  kTensorCores,
  // The same with a kernel of our own wherever a template can: for vendor calls
  // that fail or are not to be had.
  kOwn,
  // Eager to the letter: nothing joined, nothing captured.
  kPlain,
  // MakeNaiveSchedule: one template with its defaults per operation.
  kNaive,
};

// The schedule of a mapping. Without library calls `kEager` and `kPlain` use
// templates alone. UNIMPLEMENTED as MakeNaiveSchedule.
absl::StatusOr<Schedule> MakeStartSchedule(const ScheduleContext& context, StartMapping mapping);

// The mappings that differ from `schedule` as actions of type `restart`, the
// best bet first: what is left to do when the start fails. Argument `mapping`
// names each, argument `rank` counts from 0.
std::vector<LegalAction> EnumerateRestarts(const ScheduleContext& context,
                                           const Schedule& schedule);

}  // namespace mtmc::kernel

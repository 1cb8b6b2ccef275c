// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "kernel/templates/kernel_template.h"

namespace mtmc::kernel {

// All templates, from the most special to the most general, calls last: the first
// of our own that accepts a group prints it where nothing else was chosen.
std::span<const KernelTemplate* const> Templates();

// Null for an unknown name.
const KernelTemplate* FindTemplate(std::string_view name);

// The template of a group whose name was checked.
const KernelTemplate& TemplateOf(const KernelGroup& group);

// The first template of our own without a tier, or the first call, that accepts the view;
// null when none does.
const KernelTemplate* FindOwnTemplate(const GroupView& view, const EmitTarget& target);
const KernelTemplate* FindCall(const GroupView& view, const EmitTarget& target);
// The template that may compute the view faster on tensor cores, in a precision tier; null
// when none does.
const KernelTemplate* FindTier(const GroupView& view, const EmitTarget& target);

// The group as its template sees it. The arguments must outlive the view. An
// unknown template sees what our own do.
GroupView ViewOf(const Graph& graph, const LoopNest& nest, const NestIndex& index,
                 const KernelGroup& group);

// The group with every knob: the template's defaults under the group's own.
KernelGroup WithAllKnobs(const GroupView& view, const EmitTarget& target);

// INVALID_ARGUMENT, with the group's name and what is allowed, unless its template
// is known and accepts the group, and the template's table its knobs and swept
// values.
absl::Status CheckGroup(const GroupView& view, const EmitTarget& target, const KnobValues& tune);

}  // namespace mtmc::kernel

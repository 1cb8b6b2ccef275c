// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "kernel/loops/loop.h"
#include "kernel/view/group_view.h"

namespace mtmc::kernel {

// What a group computes, which follows from its loops. Which template prints it is
// another question, and a choice.
enum class GroupKind {
  kPointwise,      // maps alone, data movement included
  kReduction,      // reductions, and what has an element per result of theirs
  kNormalization,  // reductions, and what has an element per element they read
  kWindow,         // reductions over overlapping windows
  kContraction,    // a sum of products
  kScan,           // running combinations
  kOpaque,         // something that has no loop form
};

GroupKind KindOf(const GroupView& view);

// `pointwise` and so on.
std::string_view ToText(GroupKind kind);

// Whether a reduction runs over a window: an index mixes where the result is with
// where in the window it reads.
bool IsWindow(const Loop& loop);

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernel/action/legal_action.h"
#include "kernel/action/partition.h"

namespace mtmc::kernel {

// Rewrites that the schedule's graph still allows (`kernel/rewrite/rewrite.h`), as actions of
// type `simplify`: all that can be made one after the other first, where that is more than one.
// Each starts anew with what eager does in the rewritten graph, but for the groups that the
// schedule has with the same nodes. Where a vendor may round the products of convolutions to TF32,
// there is one more of each, with `precision` `ieee`, that does not let it. The context and the
// schedule must outlive the result.
std::vector<LegalAction> EnumerateSimplifications(const ScheduleContext& context,
                                                  const Schedule& schedule);

// Convolutions whose operands may still be laid out with channels last, as actions of type
// `reorder`, in the same way.
std::vector<LegalAction> EnumerateLayouts(const ScheduleContext& context, const Schedule& schedule);

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/view/group_cost.h"

#include <algorithm>

#include "kernel/view/group_view.h"

namespace mtmc::kernel {
namespace {

double Iterations(const Loop& loop) {
  double count = 1;
  for (int64_t extent : loop.extents) count *= static_cast<double>(extent);
  return count;
}

double CostOfInlined(const GroupView& view, const ScalarPtr& body,
                     const std::vector<int64_t>& extents) {
  return CostOf(InlineMaps(view, body, extents));
}

}  // namespace

GroupCost CostOfSweeps(const GroupView& view) {
  GroupCost cost;
  // Sweeps over the same elements share their maps, so the costliest counts.
  double sweep = 0;
  for (const Loop* loop : view.loops) {
    switch (loop->form) {
      case Loop::Form::kReduce:
      case Loop::Form::kScan:
        sweep = std::max(sweep,
                         Iterations(*loop) * (1 + CostOfInlined(view, loop->body, loop->extents)));
        break;
      case Loop::Form::kContract:
      case Loop::Form::kMap:
      case Loop::Form::kOpaque:
        break;
    }
  }
  for (const std::string& output : view.outputs) {
    const Loop* loop = FindLoop(view, output);
    if (loop->form != Loop::Form::kMap) continue;
    sweep = std::max(sweep, Iterations(*loop) * CostOfInlined(view, loop->body, loop->extents));
  }
  cost.operations += sweep;
  for (const auto* values : {&view.inputs, &view.outputs}) {
    for (const std::string& value : *values) {
      cost.bytes += static_cast<double>(view.nest->types.find(value)->second.bytes());
    }
  }
  return cost;
}

}  // namespace mtmc::kernel

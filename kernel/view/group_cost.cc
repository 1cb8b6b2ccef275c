// SPDX-License-Identifier: Apache-2.0
#include "kernel/view/group_cost.h"

#include <algorithm>

#include "kernel/view/contraction_space.h"
#include "kernel/view/group_view.h"

namespace mtmc::kernel {
namespace {

// Width of a block of a matrix product: how often one loaded element is used per load.
constexpr double kReuse = 64;

double Iterations(const Loop& loop) {
  double count = 1;
  for (int64_t extent : loop.extents) count *= static_cast<double>(extent);
  return count;
}

double CostOfInlined(const GroupView& view, const ScalarPtr& body,
                     const std::vector<int64_t>& extents) {
  return CostOf(InlineMaps(view, body, extents));
}

// Each factor is loaded once per block of the other side.
double CostOfContraction(const GroupView& view, const Loop& loop) {
  const ContractionSpace space = SpaceOf(loop);
  const double k = static_cast<double>(space.k) * static_cast<double>(space.batch);
  const double m = static_cast<double>(space.m);
  const double n = static_cast<double>(space.n);
  return CostOfInlined(view, loop.lhs, loop.extents) * k * m * std::max(1.0, n / kReuse) +
         CostOfInlined(view, loop.rhs, loop.extents) * k * n * std::max(1.0, m / kReuse) +
         space.flops();
}

}  // namespace

GroupCost CostOfGroup(const GroupView& view) {
  GroupCost cost;
  // Sweeps over the same elements share their maps, so the costliest counts.
  double sweep = 0;
  for (const Loop* loop : view.loops) {
    switch (loop->form) {
      case Loop::Form::kContract:
        cost.operations += CostOfContraction(view, *loop);
        break;
      case Loop::Form::kReduce:
      case Loop::Form::kScan:
        sweep = std::max(sweep,
                         Iterations(*loop) * (1 + CostOfInlined(view, loop->body, loop->extents)));
        break;
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

// SPDX-License-Identifier: Apache-2.0
#include "kernel/view/contraction_space.h"

#include "kernel/algebra/index_algebra.h"

namespace mtmc::kernel {
namespace {

void TakeApart(const std::vector<int>& axes, const Loop& loop, const ScalarPtr& flat,
               const std::vector<int64_t>& extents, std::vector<ScalarPtr>& result) {
  TensorType space{.data_type = DataType::kI64};
  for (int axis : axes) space.shape.push_back(loop.extents[static_cast<size_t>(axis)]);
  const std::vector<ScalarPtr> indices = IndicesOf(space, flat, extents);
  for (size_t i = 0; i < axes.size(); ++i) result[static_cast<size_t>(axes[i])] = indices[i];
}

}  // namespace

ContractionSpace SpaceOf(const Loop& loop) {
  ContractionSpace space{.loop = &loop};
  for (int axis = 0; axis < static_cast<int>(loop.extents.size()); ++axis) {
    const int64_t extent = loop.extents[static_cast<size_t>(axis)];
    if (axis >= loop.output_axes()) {
      space.k_axes.push_back(axis);
      space.k *= extent;
      continue;
    }
    const bool is_left = UsesAxis(loop.lhs, axis);
    const bool is_right = UsesAxis(loop.rhs, axis);
    if (is_left && !is_right) {
      space.m_axes.push_back(axis);
      space.m *= extent;
    } else if (is_right && !is_left) {
      space.n_axes.push_back(axis);
      space.n *= extent;
    } else {
      space.batch_axes.push_back(axis);
      space.batch *= extent;
    }
  }
  return space;
}

std::vector<ScalarPtr> AxesOf(const ContractionSpace& space, const ScalarPtr& batch,
                              const ScalarPtr& m, const ScalarPtr& n, const ScalarPtr& k,
                              const std::vector<int64_t>& extents) {
  std::vector<ScalarPtr> axes(space.loop->extents.size());
  TakeApart(space.batch_axes, *space.loop, batch, extents, axes);
  TakeApart(space.m_axes, *space.loop, m, extents, axes);
  TakeApart(space.n_axes, *space.loop, n, extents, axes);
  TakeApart(space.k_axes, *space.loop, k, extents, axes);
  return axes;
}

double OperationsOf(const GroupView& view, const ContractionSpace& space, double left_times,
                    double right_times) {
  const auto cost_of = [&](const ScalarPtr& factor) {
    return CostOf(InlineMaps(view, factor, space.loop->extents));
  };
  const double k = static_cast<double>(space.k) * static_cast<double>(space.batch);
  return cost_of(space.loop->lhs) * k * static_cast<double>(space.m) * left_times +
         cost_of(space.loop->rhs) * k * static_cast<double>(space.n) * right_times + space.flops();
}

const Loop* FindContraction(const GroupView& view) {
  const Loop* found = nullptr;
  for (const Loop* loop : view.loops) {
    if (loop->form != Loop::Form::kContract) continue;
    if (found != nullptr) return nullptr;
    found = loop;
  }
  return found;
}

}  // namespace mtmc::kernel

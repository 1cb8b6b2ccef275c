// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/row/map_kernel.h"

#include <algorithm>
#include <cstdint>

#include "kernel/algebra/index_algebra.h"
#include "kernel/graph/text.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/kernel_writer.h"

namespace mtmc::kernel {

absl::StatusOr<EmittedStep> EmitMap(const GroupView& view, const EmitTarget& target,
                                    const SweepPlan::Stage& stage, const std::string& value,
                                    const std::string& name) {
  SweepPlan::Stage own = stage;
  own.map_outputs = {value};
  KernelWriter writer(view, target, {}, name);
  writer.Reserve({"i"});
  for (const std::string& input : ReadsOf(view, own)) writer.AddParameter(input, false);
  writer.AddParameter(value, true);
  const TensorType& type = view.nest->types.find(value)->second;
  const int64_t elements = type.elements();
  const bool is_gpu = !target.is_cpu();
  // On a CPU a block is a loop over neighbours that its compiler vectorizes.
  const int64_t block = std::min<int64_t>(is_gpu ? 256 : 1024, target.max_threads_per_block);
  const DialectText& text = writer.text();
  const ScalarPtr i = writer.DeclareThread(elements, std::to_string(block));
  if (elements % block != 0) {
    writer.Open(Concat("if (i < ", text.IntegerLiteral(elements, DataType::kI64), ")"));
  }
  const std::vector<ScalarPtr> indices = IndicesOf(type, i, writer.extents());
  writer.Store(value, indices, writer.Value(value, indices));
  if (elements % block != 0) writer.Close();
  return writer.Finish(
      {.grid = {Concat("ceil_div(", std::max<int64_t>(elements, 1), ", ", block, ")")},
       .block = {std::to_string(block)}});
}

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

LowerNode Cumulative(Combiner combiner) {
  return [combiner](NodeLowering& node) {
    const DataType type = ComputeType(node.result_type().data_type);
    const Elements self = CastTo(node.Tensor("self"), type);
    if (self.rank() == 0) return false;
    const int dim = NodeLowering::Dimension(node.Int("dim", 0), self.rank());
    const bool is_result = type == node.result_type().data_type;
    const Elements scanned =
        node.Scan(self, combiner, dim, is_result ? node.result() : node.NameOf("running"));
    if (!is_result) node.Define(scanned);
    return true;
  };
}

}  // namespace

void AddScanOps(OpTable& table) {
  table["cumsum"] = Cumulative(Combiner::kSum);
  table["cumprod"] = Cumulative(Combiner::kProduct);
}

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

OpTable MakeOpTable() {
  OpTable table;
  AddPointwiseOps(table);
  AddActivationOps(table);
  AddViewOps(table);
  AddArrangementOps(table);
  AddCreationOps(table);
  AddReductionOps(table);
  AddSoftmaxOps(table);
  AddNormOps(table);
  AddLossOps(table);
  AddProductOps(table);
  AddConvolutionOps(table);
  AddWindowOps(table);
  AddScanOps(table);
  AddIndexOps(table);
  AddAttentionOps(table);
  return table;
}

}  // namespace

const OpTable& Lowerings() {
  static const OpTable* const table = new OpTable(MakeOpTable());
  return *table;
}

}  // namespace mtmc::kernel

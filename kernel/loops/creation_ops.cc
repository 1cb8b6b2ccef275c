// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

LowerNode Filled(double value) {
  return [value](NodeLowering& node) {
    node.DefineMovement(Constant(value, node.result_type().data_type, node.result_type().shape));
    return true;
  };
}

bool LowerFull(NodeLowering& node) {
  const auto value = node.FindOperand(node.Has("fill_value") ? "fill_value" : "value");
  if (!value) return false;
  node.DefineMovement(*value);
  return true;
}

bool LowerArange(NodeLowering& node) {
  const double start = node.Double("start", 0);
  const double step = node.Double("step", 1);
  const DataType type = ComputeType(node.result_type().data_type);
  node.DefineMovement(
      {{type, node.result_type().shape}, [=](const std::vector<ScalarPtr>& indices) {
         return Add(Mul(Cast(indices.at(0), type), Literal(step, type)), Literal(start, type));
       }});
  return true;
}

bool LowerEye(NodeLowering& node) {
  const DataType type = node.result_type().data_type;
  node.DefineMovement({node.result_type(), [=](const std::vector<ScalarPtr>& indices) {
                         return Select(
                             Apply(Scalar::Operator::kEqual, {indices.at(0), indices.at(1)}),
                             Literal(1, type), Literal(0, type));
                       }});
  return true;
}

}  // namespace

void AddCreationOps(OpTable& table) {
  for (const char* name : {"zeros", "zeros_like", "new_zeros"}) table[name] = Filled(0);
  // What nobody has written may as well be zero, and is so in every run.
  for (const char* name : {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty",
                           "new_empty_strided"}) {
    table[name] = Filled(0);
  }
  for (const char* name : {"ones", "ones_like", "new_ones"}) table[name] = Filled(1);
  for (const char* name : {"full", "full_like", "new_full", "scalar_tensor"}) {
    table[name] = LowerFull;
  }
  table["scalar_tensor"] = [](NodeLowering& node) {
    const auto value = node.FindDouble("s");
    return value && Filled(*value)(node);
  };
  table["arange"] = LowerArange;
  table["eye"] = LowerEye;
}

}  // namespace mtmc::kernel

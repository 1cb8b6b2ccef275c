// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/op_table.h"
#include "kernel/loops/softmax.h"

namespace mtmc::kernel {
namespace {

using Operator = Scalar::Operator;
using Operands = std::vector<ScalarPtr>;

Elements Accumulated(const NodeLowering& node) {
  return CastTo(node.Tensor("self"), ComputeType(node.result_type().data_type));
}

LowerNode Softmax(const std::function<Elements(NodeLowering&, const Elements&, int)>& body) {
  return [body](NodeLowering& node) {
    const Elements self = Accumulated(node);
    if (self.rank() == 0 || !IsFloating(self.type.data_type)) return false;
    node.Define(body(node, self, NodeLowering::Dimension(node.Int("dim", -1), self.rank())));
    return true;
  };
}

// softmax(-x).
Elements SoftminOf(NodeLowering& node, const Elements& x, int dim) {
  return SoftmaxOf(
      node, MapElements({x}, [](const Operands& v) { return Apply(Operator::kNeg, {v[0]}); }), dim);
}

bool LowerLogSumExp(NodeLowering& node) {
  const Elements self = Accumulated(node);
  if (self.rank() == 0) return false;
  const std::string sum = node.NameOf("sum");
  const Elements max = node.Reduce(self, {.combiner = Combiner::kOnlineSoftmax,
                                          .dims = node.Dimensions("dim", self.rank()),
                                          .keep = node.Bool("keepdim", false),
                                          .name = node.NameOf("max"),
                                          .second = sum});
  // An infinite maximum is the result, where no element is NaN: then the sum is, not the
  // maximum. max + log(sum) would be NaN.
  node.Define(MapElements({max, node.Value(sum)}, [](const Operands& x) {
    return Select(Apply(Operator::kIsInf, {x[0]}), Add(x[0], Sub(x[1], x[1])),
                  Add(x[0], Apply(Operator::kLog, {x[1]})));
  }));
  return true;
}

}  // namespace

SoftmaxRows ReduceSoftmaxRows(NodeLowering& node, const Elements& x, int dim) {
  const std::string sum = node.NameOf("sum");
  const Elements max = node.Reduce(x, {.combiner = Combiner::kOnlineSoftmax,
                                       .dims = {dim},
                                       .keep = true,
                                       .name = node.NameOf("max"),
                                       .second = sum});
  return {max, node.Value(sum)};
}

Elements SoftmaxOf(NodeLowering& node, const Elements& x, int dim) {
  const SoftmaxRows rows = ReduceSoftmaxRows(node, x, dim);
  return MapElements({x, rows.max, rows.sum}, [](const Operands& v) {
    return Div(Apply(Operator::kExp, {Sub(v[0], v[1])}), v[2]);
  });
}

Elements LogSoftmaxOf(NodeLowering& node, const Elements& x, int dim) {
  const SoftmaxRows rows = ReduceSoftmaxRows(node, x, dim);
  return MapElements({x, rows.max, rows.sum}, [](const Operands& v) {
    return Sub(Sub(v[0], v[1]), Apply(Operator::kLog, {v[2]}));
  });
}

void AddSoftmaxOps(OpTable& table) {
  table["softmax"] = Softmax(SoftmaxOf);
  table["_softmax"] = table["softmax"];
  table["log_softmax"] = Softmax(LogSoftmaxOf);
  table["_log_softmax"] = table["log_softmax"];
  table["softmin"] = Softmax(SoftminOf);
  table["logsumexp"] = LowerLogSumExp;
}

}  // namespace mtmc::kernel

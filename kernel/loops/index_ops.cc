// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

using Indices = std::vector<ScalarPtr>;

Elements IndexTensor(const NodeLowering& node, const char* name) {
  return CastTo(node.Tensor(name), DataType::kI64);
}

// weight[indices[...], j].
bool LowerEmbedding(NodeLowering& node) {
  const Elements weight = node.Tensor("weight");
  const Elements index = IndexTensor(node, "indices");
  node.Define({node.result_type(), [=](const Indices& axes) {
                 const Indices outer = Part(axes, 0, index.rank());
                 return weight.at({index.at(outer), axes.at(outer.size())});
               }});
  return true;
}

// An index that counts from the end where it is negative.
ScalarPtr FromEnd(const ScalarPtr& index, int64_t extent) {
  return Select(Less(index, Index(0)), Add(index, Index(extent)), index);
}

// self with its index along `dim` taken from a tensor of the result's shape. `wraps` says
// whether a negative index counts from the end.
bool LowerGather(NodeLowering& node, const char* index_name, bool wraps) {
  const Elements self = node.Tensor("self");
  const auto dim = node.FindInt("dim");
  if (!dim) return false;
  const Elements index = BroadcastTo(IndexTensor(node, index_name), node.result_type().shape);
  const auto d = static_cast<size_t>(NodeLowering::Dimension(*dim, self.rank()));
  node.Define({node.result_type(), [=](const Indices& axes) {
                 Indices source = axes;
                 const ScalarPtr at = index.at(axes);
                 source.at(d) = wraps ? FromEnd(at, self.type.shape.at(d)) : at;
                 for (size_t i = 0; i < source.size(); ++i) {
                   if (i != d && self.type.shape.at(i) == 1) source.at(i) = Index(0);
                 }
                 return self.at(source);
               }});
  return true;
}

bool LowerIndexSelect(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  const Elements index = IndexTensor(node, "index");
  if (index.rank() != 1) return false;
  const auto d = static_cast<size_t>(NodeLowering::Dimension(node.Int("dim", 0), self.rank()));
  node.Define({node.result_type(), [=](const Indices& axes) {
                 Indices source = axes;
                 source.at(d) = index.at({axes.at(d)});
                 return self.at(source);
               }});
  return true;
}

// self[i, j, ...] with integer index tensors on the leading dimensions and whole
// ones behind; negative indices count from the end.
bool LowerIndex(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  const std::vector<Elements> tensors = node.Tensors("indices");
  const GraphArgument* argument = node.node().FindArgument("indices");
  if (argument == nullptr) return false;
  const auto* list = std::get_if<std::vector<GraphArgument>>(&argument->value);
  // A None in front moves the indexed dimensions and has no form here.
  if (list == nullptr || tensors.empty()) return false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!std::holds_alternative<ValueArgument>((*list).at(i).value)) return false;
    if (tensors.at(i).type.data_type == DataType::kBool) return false;
  }
  std::vector<int64_t> shape;
  for (const Elements& tensor : tensors) shape = BroadcastShape(shape, tensor.type.shape);
  std::vector<Elements> wide;
  for (const Elements& tensor : tensors) {
    wide.push_back(CastTo(BroadcastTo(tensor, shape), DataType::kI64));
  }
  node.Define({node.result_type(), [=](const Indices& axes) {
                 const auto split = static_cast<int64_t>(shape.size());
                 const Indices outer = Part(axes, 0, split);
                 const Indices inner = Part(axes, split, static_cast<int64_t>(axes.size()) - split);
                 Indices source;
                 for (size_t i = 0; i < wide.size(); ++i) {
                   source.push_back(FromEnd(wide.at(i).at(outer), self.type.shape.at(i)));
                 }
                 source.insert(source.end(), inner.begin(), inner.end());
                 return self.at(source);
               }});
  return true;
}

bool LowerOneHot(NodeLowering& node) {
  const Elements index = IndexTensor(node, "self");
  node.Define({node.result_type(), [=](const Indices& axes) {
                 const Indices outer = Part(axes, 0, index.rank());
                 return Select(
                     Apply(Scalar::Operator::kEqual, {index.at(outer), axes.at(outer.size())}),
                     Index(1), Index(0));
               }});
  return true;
}

}  // namespace

void AddIndexOps(OpTable& table) {
  table["embedding"] = LowerEmbedding;
  table["gather"] = [](NodeLowering& node) { return LowerGather(node, "index", /*wraps=*/false); };
  table["take_along_dim"] = [](NodeLowering& node) {
    return LowerGather(node, "indices", /*wraps=*/true);
  };
  table["index_select"] = LowerIndexSelect;
  table["index"] = LowerIndex;
  table["one_hot"] = LowerOneHot;
}

}  // namespace mtmc::kernel

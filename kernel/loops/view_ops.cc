// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

using Indices = std::vector<ScalarPtr>;

// Defines result `index` as `source` read at `map` of its indices.
void DefineView(NodeLowering& node, const Elements& source, size_t index,
                const std::function<Indices(const Indices&)>& map) {
  node.DefineMovement({{source.type.data_type, node.result_type(index).shape},
                       [source, map](const Indices& indices) { return source.at(map(indices)); }},
                      index);
}

bool LowerReshape(NodeLowering& node) {
  node.DefineMovement(Reshape(node.Tensor("self"), node.result_type().shape));
  return true;
}

bool LowerExpand(NodeLowering& node) {
  node.DefineMovement(BroadcastTo(node.Tensor("self"), node.result_type().shape));
  return true;
}

std::vector<int> Identity(int rank) {
  std::vector<int> order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  return order;
}

// Result dimension i is source dimension order[i].
bool Permute(NodeLowering& node, const std::vector<int>& order) {
  std::vector<int> dims = order;
  std::sort(dims.begin(), dims.end());
  Require(dims == Identity(node.Tensor("self").rank()));
  DefineView(node, node.Tensor("self"), 0, [&order](const Indices& indices) {
    Indices source(indices.size());
    for (size_t i = 0; i < order.size(); ++i)
      source.at(static_cast<size_t>(order.at(i))) = indices.at(i);
    return source;
  });
  return true;
}

bool LowerPermute(NodeLowering& node) {
  const int rank = node.Tensor("self").rank();
  const std::vector<int64_t> dims = node.FindInts("dims").value_or(std::vector<int64_t>{});
  std::vector<int> order;
  for (const int64_t dim : dims) {
    order.push_back(NodeLowering::Dimension(dim, rank));
  }
  return Permute(node, order);
}

bool SwapDimensions(NodeLowering& node, int64_t a, int64_t b) {
  const int rank = node.Tensor("self").rank();
  std::vector<int> order = Identity(rank);
  if (rank >= 2) {
    std::swap(order.at(static_cast<size_t>(NodeLowering::Dimension(a, rank))),
              order.at(static_cast<size_t>(NodeLowering::Dimension(b, rank))));
  }
  return Permute(node, order);
}

// Source index along `dim` is first + step * index.
void DefineStrided(NodeLowering& node, const Elements& source, size_t index, int dim, int64_t first,
                   int64_t step) {
  DefineView(node, source, index, [=](const Indices& indices) {
    Indices moved = indices;
    ScalarPtr& along = moved.at(static_cast<size_t>(dim));
    along = Add(Mul(along, Index(step)), Index(first));
    return moved;
  });
}

int64_t ClampIndex(int64_t index, int64_t extent) {
  return std::clamp<int64_t>(index < 0 ? index + extent : index, 0, extent);
}

bool LowerSlice(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  const int dim = NodeLowering::Dimension(node.Int("dim", 0), self.rank());
  const int64_t extent = self.type.shape.at(static_cast<size_t>(dim));
  DefineStrided(node, self, 0, dim, ClampIndex(node.Int("start", 0), extent), node.Int("step", 1));
  return true;
}

bool LowerNarrow(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  const int dim = NodeLowering::Dimension(node.Int("dim", 0), self.rank());
  const auto start = node.FindInt("start");
  if (!start) return false;
  DefineStrided(node, self, 0, dim,
                ClampIndex(*start, self.type.shape.at(static_cast<size_t>(dim))), 1);
  return true;
}

// Result `index` is the source at `position` along `dim`, which disappears.
void DefineSelected(NodeLowering& node, const Elements& source, size_t index, int dim,
                    int64_t position) {
  DefineView(node, source, index, [=](const Indices& indices) {
    Indices moved = indices;
    Require(dim <= static_cast<int>(moved.size()));
    moved.insert(moved.begin() + dim, Index(position));
    return moved;
  });
}

bool LowerSelect(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  const int dim = NodeLowering::Dimension(node.Int("dim", 0), self.rank());
  const int64_t index = node.Int("index", 0);
  const int64_t extent = self.type.shape.at(static_cast<size_t>(dim));
  DefineSelected(node, self, 0, dim, index < 0 ? index + extent : index);
  return true;
}

bool LowerUnbind(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  const int dim = NodeLowering::Dimension(node.Int("dim", 0), self.rank());
  for (size_t i = 0; i < node.result_count(); ++i) {
    DefineSelected(node, self, i, dim, static_cast<int64_t>(i));
  }
  return true;
}

// split, chunk and their kin: the results' own extents say where each begins.
bool LowerSplit(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  const int dim = NodeLowering::Dimension(node.Int("dim", 0), self.rank());
  int64_t first = 0;
  for (size_t i = 0; i < node.result_count(); ++i) {
    DefineStrided(node, self, i, dim, first, 1);
    first += node.result_type(i).shape.at(static_cast<size_t>(dim));
  }
  return true;
}

// The diagonal of a matrix, or the matrix with a vector on its diagonal.
bool LowerDiag(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  const int64_t diagonal = node.Int("diagonal", 0);
  const int64_t down = diagonal < 0 ? -diagonal : 0;
  const int64_t right = diagonal > 0 ? diagonal : 0;
  if (self.rank() == 2) {
    DefineView(node, self, 0, [=](const Indices& indices) {
      return Indices{Add(indices.at(0), Index(down)), Add(indices.at(0), Index(right))};
    });
    return true;
  }
  const DataType type = self.type.data_type;
  node.DefineMovement({node.result_type(), [=](const Indices& indices) {
                         const ScalarPtr row = Sub(indices.at(0), Index(down));
                         const ScalarPtr column = Sub(indices.at(1), Index(right));
                         const ScalarPtr is_diagonal =
                             And(Apply(Scalar::Operator::kEqual, {row, column}),
                                 LessEqual(Index(0), row));
                         return Select(is_diagonal, self.at({row}), Literal(0, type));
                       }});
  return true;
}

bool LowerDiagonal(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  const auto dim1 = static_cast<size_t>(NodeLowering::Dimension(node.Int("dim1", 0), self.rank()));
  const auto dim2 = static_cast<size_t>(NodeLowering::Dimension(node.Int("dim2", 1), self.rank()));
  const int64_t offset = node.Int("offset", 0);
  DefineView(node, self, 0, [=](const Indices& indices) {
    Indices source(static_cast<size_t>(self.rank()));
    size_t next = 0;
    for (size_t dim = 0; dim < source.size(); ++dim) {
      if (dim != dim1 && dim != dim2) source.at(dim) = indices.at(next++);
    }
    source.at(dim1) = Add(indices.at(next), Index(offset < 0 ? -offset : 0));
    source.at(dim2) = Add(indices.at(next), Index(offset > 0 ? offset : 0));
    return source;
  });
  return true;
}

bool LowerBroadcastTensors(NodeLowering& node) {
  const std::vector<Elements> tensors = node.Tensors("tensors");
  if (tensors.size() != node.result_count()) return false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    node.DefineMovement(BroadcastTo(tensors.at(i), node.result_type(i).shape), i);
  }
  return true;
}

}  // namespace

void AddViewOps(OpTable& table) {
  for (const char* name : {"view", "reshape", "flatten", "unflatten", "_unsafe_view", "squeeze",
                           "unsqueeze", "view_as", "reshape_as", "ravel"}) {
    table[name] = LowerReshape;
  }
  for (const char* name : {"expand", "expand_as", "broadcast_to"}) table[name] = LowerExpand;
  table["broadcast_tensors"] = LowerBroadcastTensors;
  table["permute"] = LowerPermute;
  table["transpose"] = [](NodeLowering& node) {
    return SwapDimensions(node, node.Int("dim0", 0), node.Int("dim1", 1));
  };
  table["swapaxes"] = [](NodeLowering& node) {
    return SwapDimensions(node, node.Int("axis0", 0), node.Int("axis1", 1));
  };
  table["t"] = [](NodeLowering& node) { return SwapDimensions(node, 0, 1); };
  table["numpy_T"] = [](NodeLowering& node) {
    std::vector<int> order = Identity(node.Tensor("self").rank());
    std::reverse(order.begin(), order.end());
    return Permute(node, order);
  };
  for (const char* name : {"mT", "matrix_H", "adjoint"}) {
    table[name] = [](NodeLowering& node) { return SwapDimensions(node, -2, -1); };
  }
  table["slice"] = LowerSlice;
  table["narrow"] = LowerNarrow;
  table["select"] = LowerSelect;
  table["unbind"] = LowerUnbind;
  for (const char* name : {"split", "split_with_sizes", "chunk", "tensor_split"}) {
    table[name] = LowerSplit;
  }
  table["diag"] = LowerDiag;
  table["diagonal"] = LowerDiagonal;
}

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

using Indices = std::vector<ScalarPtr>;

// Parts one after another along `dim`; `extents` are theirs.
Elements Concatenate(const std::vector<Elements>& parts, size_t dim, const TensorType& type) {
  return {type, [=](const Indices& indices) {
            int64_t end = type.shape.at(dim);
            ScalarPtr value;
            for (size_t i = parts.size(); i-- > 0;) {
              const int64_t begin = end - parts.at(i).type.shape.at(dim);
              Indices own = indices;
              own.at(dim) = Sub(own.at(dim), Index(begin));
              const ScalarPtr element = Cast(parts.at(i).at(own), type.data_type);
              value = value == nullptr ? element
                                       : Select(Less(indices.at(dim), Index(end)), element, value);
              end = begin;
            }
            return value;
          }};
}

// Whether parts of these shapes make up `type`.
bool IsConcatenation(const std::vector<Elements>& parts, size_t dim, const TensorType& type) {
  std::vector<int64_t> shape = type.shape;
  shape.at(dim) = 0;
  for (const Elements& part : parts) {
    shape.at(dim) += part.type.shape.at(dim);
    if (part.type.shape.size() != shape.size()) return false;
  }
  return shape == type.shape;
}

// More parts are a library call: a kernel takes each as an argument, and finds by
// comparing with every border which part an element is in.
constexpr size_t kMaxParts = 64;

bool LowerCat(NodeLowering& node) {
  std::vector<Elements> parts;
  for (const Elements& part : node.Tensors("tensors")) {
    // PyTorch skips empty parts of any rank.
    if (part.type.elements() != 0) parts.push_back(part);
  }
  if (parts.empty() || parts.size() > kMaxParts) return false;
  const int dim = NodeLowering::Dimension(node.Int("dim", 0), parts.at(0).rank());
  Require(IsConcatenation(parts, static_cast<size_t>(dim), node.result_type()));
  node.DefineMovement(Concatenate(parts, static_cast<size_t>(dim), node.result_type()));
  return true;
}

bool LowerStack(NodeLowering& node) {
  std::vector<Elements> parts = node.Tensors("tensors");
  if (parts.empty() || parts.size() > kMaxParts) return false;
  const int dim = NodeLowering::Dimension(node.Int("dim", 0), parts.at(0).rank() + 1);
  for (Elements& part : parts) {
    std::vector<int64_t> shape = part.type.shape;
    shape.insert(shape.begin() + dim, 1);
    part = Reshape(part, shape);
  }
  Require(IsConcatenation(parts, static_cast<size_t>(dim), node.result_type()));
  node.DefineMovement(Concatenate(parts, static_cast<size_t>(dim), node.result_type()));
  return true;
}

// Where a position that was moved by the padding in front reads, for the modes that repeat
// the tensor. A negative padding takes elements away, first of all.
ScalarPtr PaddedIndex(const ScalarPtr& index, int64_t extent, int64_t before, int64_t after,
                      const std::string& mode) {
  const ScalarPtr last = Index(extent - 1);
  if (mode == "replicate") {
    return Apply(Scalar::Operator::kMin, {Apply(Scalar::Operator::kMax, {index, Index(0)}), last});
  }
  if (mode == "circular") {
    const int64_t first = std::max<int64_t>(-before, 0);
    const int64_t period = extent - first - std::max<int64_t>(-after, 0);
    return Add(Mod(Add(index, Index(period - first)), period), Index(first));
  }
  const ScalarPtr mirrored = Apply(Scalar::Operator::kAbs, {index});
  return Sub(last, Apply(Scalar::Operator::kAbs, {Sub(last, mirrored)}));
}

bool LowerPad(NodeLowering& node, const std::string& mode) {
  const Elements self = node.Tensor("self");
  const auto padding = node.FindInts(node.Has("pad") ? "pad" : "padding");
  if (!padding || padding->size() % 2 != 0) return false;
  const double value = node.Double("value", 0);
  node.DefineMovement(
      {node.result_type(), [=](const Indices& indices) {
         Indices source = indices;
         ScalarPtr is_inside = Literal(1, DataType::kBool);
         for (size_t i = 0; i * 2 < padding->size(); ++i) {
           const size_t dim = source.size() - 1 - i;
           const int64_t before = (*padding).at(2 * i);
           const int64_t after = (*padding).at(2 * i + 1);
           const int64_t extent = self.type.shape.at(dim);
           source.at(dim) = Sub(source.at(dim), Index(before));
           if (mode != "constant") {
             source.at(dim) = PaddedIndex(source.at(dim), extent, before, after, mode);
             continue;
           }
           if (before > 0) is_inside = And(is_inside, LessEqual(Index(0), source.at(dim)));
           if (after > 0) is_inside = And(is_inside, Less(source.at(dim), Index(extent)));
         }
         return Select(is_inside, self.at(source), Literal(value, self.type.data_type));
       }});
  return true;
}

bool LowerFlip(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  // None of the dimensions, not all of them as in a reduction.
  const bool is_none = node.FindInts("dims").value_or(std::vector<int64_t>{}).empty();
  const auto dims = is_none ? std::vector<int>{} : node.Dimensions("dims", self.rank());
  node.DefineMovement({self.type, [=](const Indices& indices) {
                         Indices source = indices;
                         for (const int dim : dims) {
                           const auto d = static_cast<size_t>(dim);
                           source.at(d) = Sub(Index(self.type.shape.at(d) - 1), source.at(d));
                         }
                         return self.at(source);
                       }});
  return true;
}

bool LowerRoll(NodeLowering& node) {
  Elements self = node.Tensor("self");
  const auto shifts = node.FindInts("shifts");
  std::vector<int64_t> dims = node.FindInts("dims").value_or(std::vector<int64_t>{});
  if (!shifts) return false;
  const std::vector<int64_t> shape = self.type.shape;
  if (self.type.elements() == 0) return false;
  if (dims.empty()) {
    self = Reshape(self, {self.type.elements()});
    dims = {0};
  }
  const Elements rolled{
      self.type, [=](const Indices& indices) {
        Indices source = indices;
        for (size_t i = 0; i < dims.size(); ++i) {
          const auto d = static_cast<size_t>(NodeLowering::Dimension(dims.at(i), self.rank()));
          const int64_t extent = self.type.shape.at(d);
          const int64_t shift = ((*shifts).at(i) % extent + extent) % extent;
          source.at(d) = Mod(Add(source.at(d), Index(extent - shift)), extent);
        }
        return self.at(source);
      }};
  node.DefineMovement(Reshape(rolled, shape));
  return true;
}

// Copies along each dimension; leading repeats add dimensions.
bool LowerRepeat(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  node.DefineMovement({node.result_type(), [self](const Indices& indices) {
                         const size_t rank = self.type.shape.size();
                         Indices source = Part(indices, static_cast<int64_t>(indices.size() - rank),
                                               self.rank());
                         for (size_t d = 0; d < rank; ++d) {
                           source.at(d) = Mod(source.at(d), self.type.shape.at(d));
                         }
                         return self.at(source);
                       }});
  return true;
}

// Each element `repeats` times in a row.
bool LowerRepeatInterleave(NodeLowering& node) {
  const auto self = node.FindTensor("self");
  const auto repeats = node.FindInt("repeats");
  if (!self || !repeats || *repeats < 1) return false;
  Elements source = *self;
  int dim = 0;
  if (const auto given = node.FindInt("dim")) {
    dim = NodeLowering::Dimension(*given, source.rank());
  } else {
    source = Reshape(source, {source.type.elements()});
  }
  node.DefineMovement({node.result_type(), [=](const Indices& indices) {
                         Indices moved = indices;
                         ScalarPtr& along = moved.at(static_cast<size_t>(dim));
                         along = FloorDiv(along, *repeats);
                         return source.at(moved);
                       }});
  return true;
}

// Keeps the lower (column <= row + diagonal) or upper triangle, else zero.
bool LowerTriangle(NodeLowering& node, bool is_lower) {
  const Elements self = node.Tensor("self");
  const int64_t diagonal = node.Int("diagonal", 0);
  node.DefineMovement({self.type, [=](const Indices& indices) {
                         const ScalarPtr& column = indices.at(indices.size() - 1);
                         const ScalarPtr bound =
                             Add(indices.at(indices.size() - 2), Index(diagonal));
                         const ScalarPtr is_kept =
                             is_lower ? LessEqual(column, bound) : LessEqual(bound, column);
                         return Select(is_kept, self.at(indices), Literal(0, self.type.data_type));
                       }});
  return true;
}

// Nearest neighbour with a whole factor per dimension.
bool LowerUpsampleNearest(NodeLowering& node) {
  const auto self = node.FindTensor(node.Has("input") ? "input" : "self");
  if (!self) return false;
  const std::vector<int64_t>& shape = node.result_type().shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape.at(d) == 0 || self->type.shape.at(d) == 0) return false;
    if (shape.at(d) % self->type.shape.at(d) != 0) return false;
  }
  node.DefineMovement({node.result_type(), [source = *self, shape](const Indices& indices) {
                         Indices moved = indices;
                         for (size_t d = 2; d < moved.size(); ++d) {
                           moved.at(d) =
                               FloorDiv(moved.at(d), shape.at(d) / source.type.shape.at(d));
                         }
                         return source.at(moved);
                       }});
  return true;
}

// [N, C r r, H, W] to [N, C, H r, W r].
bool LowerPixelShuffle(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  const int64_t factor = node.Int("upscale_factor", 1);
  if (self.rank() != 4 || factor < 1 || factor > self.type.shape.at(1)) return false;
  node.DefineMovement(
      {node.result_type(), [=](const Indices& indices) {
         const ScalarPtr channel =
             Add(Mul(indices.at(1), Index(factor * factor)),
                 Add(Mul(Mod(indices.at(2), factor), Index(factor)), Mod(indices.at(3), factor)));
         return self.at({indices.at(0), channel, FloorDiv(indices.at(2), factor),
                         FloorDiv(indices.at(3), factor)});
       }});
  return true;
}

// channel = g * k + j of the result is channel j * groups + g of the source.
bool LowerChannelShuffle(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  const int64_t groups = node.Int("groups", 1);
  if (groups < 1) return false;
  const int64_t per_group = self.type.shape.at(1) / groups;
  node.DefineMovement({self.type, [=](const Indices& indices) {
                         Indices source = indices;
                         source.at(1) = Add(Mul(Mod(indices.at(1), groups), Index(per_group)),
                                            FloorDiv(indices.at(1), groups));
                         return self.at(source);
                       }});
  return true;
}

}  // namespace

void AddArrangementOps(OpTable& table) {
  table["cat"] = LowerCat;
  table["concat"] = LowerCat;
  table["concatenate"] = LowerCat;
  table["stack"] = LowerStack;
  table["pad"] = [](NodeLowering& node) {
    const std::string mode = node.FindText("mode");
    return LowerPad(node, mode.empty() ? "constant" : mode);
  };
  table["constant_pad_nd"] = [](NodeLowering& node) { return LowerPad(node, "constant"); };
  for (const char* rank : {"1d", "2d", "3d"}) {
    table[std::string("reflection_pad") + rank] = [](NodeLowering& node) {
      return LowerPad(node, "reflect");
    };
    table[std::string("replication_pad") + rank] = [](NodeLowering& node) {
      return LowerPad(node, "replicate");
    };
    table[std::string("upsample_nearest") + rank] = LowerUpsampleNearest;
  }
  table["flip"] = LowerFlip;
  table["roll"] = LowerRoll;
  table["repeat"] = LowerRepeat;
  table["tile"] = LowerRepeat;
  table["repeat_interleave"] = LowerRepeatInterleave;
  table["tril"] = [](NodeLowering& node) { return LowerTriangle(node, /*is_lower=*/true); };
  table["triu"] = [](NodeLowering& node) { return LowerTriangle(node, /*is_lower=*/false); };
  table["pixel_shuffle"] = LowerPixelShuffle;
  table["channel_shuffle"] = LowerChannelShuffle;
}

}  // namespace mtmc::kernel

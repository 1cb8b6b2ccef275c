// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <numeric>

#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

using Operator = Scalar::Operator;
using Operands = std::vector<ScalarPtr>;

// Mean and sum of squared deviations with reduced dimensions kept at extent 1.
struct Moments {
  Elements mean;
  Elements deviations;
  int64_t count = 1;
};

Moments MomentsOf(NodeLowering& node, const Elements& x, const std::vector<int>& dims) {
  int64_t count = 1;
  for (const int dim : dims) count *= x.type.shape.at(static_cast<size_t>(dim));
  const std::string deviations = node.NameOf("deviations");
  const Elements mean = node.Reduce(x, {.combiner = Combiner::kWelford,
                                        .dims = dims,
                                        .keep = true,
                                        .name = node.NameOf("mean"),
                                        .second = deviations});
  return {mean, node.Value(deviations), count};
}

// 1 / sqrt(deviations / count + eps), one value per row.
Elements InverseDeviation(const Moments& moments, double eps) {
  const auto count = static_cast<double>(moments.count);
  return MapElements({moments.deviations}, [count, eps](const Operands& v) {
    const ScalarPtr variance = Div(v[0], Literal(count, v[0]->type));
    return Apply(Operator::kRsqrt, {Add(variance, Literal(eps, v[0]->type))});
  });
}

Elements Standardize(NodeLowering& node, const Elements& x, const Moments& moments, double eps) {
  const Elements scale = node.Materialize(InverseDeviation(moments, eps), node.NameOf("rstd"));
  return MapElements({x, moments.mean, scale},
                     [](const Operands& v) { return Mul(Sub(v[0], v[1]), v[2]); });
}

// A vector along dimension 1 of a tensor of this rank.
Elements AlongChannels(const Elements& vector, int rank) {
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape.at(1) = vector.type.shape.at(0);
  return Reshape(vector, shape);
}

// x * weight + bias, each where it is given.
Elements ScaleAndShift(Elements x, std::optional<Elements> weight, std::optional<Elements> bias) {
  const auto in_type = [&x](const Elements& v) { return CastTo(v, x.type.data_type); };
  if (weight) {
    x = MapElements({x, in_type(*weight)}, [](const Operands& v) { return Mul(v[0], v[1]); });
  }
  if (bias) {
    x = MapElements({x, in_type(*bias)}, [](const Operands& v) { return Add(v[0], v[1]); });
  }
  return x;
}

Elements Input(const NodeLowering& node) {
  const Elements input = node.Tensor(node.Has("input") ? "input" : "self");
  return CastTo(input, ComputeType(node.result_type().data_type));
}

std::vector<int> TrailingDimensions(const NodeLowering& node, int rank) {
  const size_t count = node.FindInts("normalized_shape").value_or(std::vector<int64_t>{}).size();
  std::vector<int> dims(count);
  Require(count <= static_cast<size_t>(rank));
  std::iota(dims.begin(), dims.end(), rank - static_cast<int>(count));
  return dims;
}

// Results: output, and for the native form mean and inverse deviation.
bool LowerLayerNorm(NodeLowering& node) {
  const Elements x = Input(node);
  const Moments moments = MomentsOf(node, x, TrailingDimensions(node, x.rank()));
  const double eps = node.Double("eps", 1e-5);
  node.Define(ScaleAndShift(Standardize(node, x, moments, eps), node.FindTensor("weight"),
                            node.FindTensor("bias")));
  if (node.result_count() == 3) {
    node.Define(moments.mean, 1);
    node.Define(InverseDeviation(moments, eps), 2);
  }
  return true;
}

bool LowerRmsNorm(NodeLowering& node) {
  const Elements x = Input(node);
  const std::vector<int> dims = TrailingDimensions(node, x.rank());
  double count = 1;
  for (const int dim : dims) {
    count *= static_cast<double>(x.type.shape.at(static_cast<size_t>(dim)));
  }
  const bool is_double = x.type.data_type == DataType::kF64;
  const double eps = node.Double("eps", is_double ? std::numeric_limits<double>::epsilon()
                                                  : std::numeric_limits<float>::epsilon());
  const Elements squares = node.Reduce(
      MapElements({x}, [](const Operands& v) { return Mul(v[0], v[0]); }),
      {.combiner = Combiner::kSum, .dims = dims, .keep = true, .name = node.NameOf("squares")});
  const Elements scale = MapElements({squares}, [count, eps](const Operands& v) {
    const ScalarPtr mean = Div(v[0], Literal(count, v[0]->type));
    return Apply(Operator::kRsqrt, {Add(mean, Literal(eps, v[0]->type))});
  });
  const Elements rrms = node.Materialize(scale, node.NameOf("rrms"));
  node.Define(
      ScaleAndShift(MapElements({x, rrms}, [](const Operands& v) { return Mul(v[0], v[1]); }),
                    node.FindTensor("weight"), std::nullopt));
  return true;
}

// x as [N, groups, C / groups, spatial...].
Elements Grouped(const Elements& x, int64_t groups) {
  std::vector<int64_t> shape = x.type.shape;
  Require(groups >= 1 && groups <= shape.at(1) && shape.at(1) % groups == 0);
  shape.at(1) /= groups;
  shape.insert(shape.begin() + 1, groups);
  return Reshape(x, shape);
}

// [N, groups, 1...] read at the channels of x.
Elements PerGroup(const Elements& row, const Elements& x, int64_t groups) {
  const int64_t per_group = x.type.shape.at(1) / groups;
  return {{row.type.data_type, x.type.shape},
          [row, per_group](const std::vector<ScalarPtr>& indices) {
            std::vector<ScalarPtr> own(indices.size() + 1, Index(0));
            own.at(0) = indices.at(0);
            own.at(1) = FloorDiv(indices.at(1), per_group);
            return row.at(own);
          }};
}

bool LowerGroupNorm(NodeLowering& node) {
  const Elements x = Input(node);
  const int64_t groups = node.Int("num_groups", node.Int("group", 1));
  const Elements grouped = Grouped(x, groups);
  std::vector<int> dims(static_cast<size_t>(grouped.rank()) - 2);
  std::iota(dims.begin(), dims.end(), 2);
  const Moments moments = MomentsOf(node, grouped, dims);
  const Elements scale =
      node.Materialize(InverseDeviation(moments, node.Double("eps", 1e-5)), node.NameOf("rstd"));
  const Elements standard =
      MapElements({x, PerGroup(moments.mean, x, groups), PerGroup(scale, x, groups)},
                  [](const Operands& v) { return Mul(Sub(v[0], v[1]), v[2]); });
  const auto channels = [&](const char* name) -> std::optional<Elements> {
    const auto vector = node.FindTensor(name);
    if (!vector) return std::nullopt;
    return AlongChannels(*vector, x.rank());
  };
  node.Define(ScaleAndShift(standard, channels("weight"), channels("bias")));
  return node.result_count() == 1;
}

// All dimensions but those listed.
std::vector<int> Without(int rank, std::initializer_list<int> kept) {
  std::vector<int> dims;
  for (int dim = 0; dim < rank; ++dim) {
    if (std::find(kept.begin(), kept.end(), dim) == kept.end()) dims.push_back(dim);
  }
  return dims;
}

std::optional<Elements> ChannelVector(const NodeLowering& node, const char* name, int rank) {
  const auto vector = node.FindTensor(name);
  if (!vector) return std::nullopt;
  return AlongChannels(*vector, rank);
}

bool LowerInstanceNorm(NodeLowering& node) {
  if (!node.Bool("use_input_stats", true)) return false;
  const Elements x = Input(node);
  const Moments moments = MomentsOf(node, x, Without(x.rank(), {0, 1}));
  node.Define(ScaleAndShift(Standardize(node, x, moments, node.Double("eps", 1e-5)),
                            ChannelVector(node, "weight", x.rank()),
                            ChannelVector(node, "bias", x.rank())));
  return true;
}

// running + momentum * (batch - running).
Elements Blend(const Elements& running, const Elements& batch, double momentum) {
  return MapElements({running, CastTo(batch, running.type.data_type)}, [=](const Operands& v) {
    return Add(Mul(Literal(1 - momentum, v[0]->type), v[0]),
               Mul(Literal(momentum, v[0]->type), v[1]));
  });
}

// Statistics of the batch; results 1 to 4 are saved mean and inverse deviation,
// and the new running mean and (unbiased) variance.
bool LowerBatchNormTraining(NodeLowering& node) {
  const Elements x = Input(node);
  const Moments moments = MomentsOf(node, x, Without(x.rank(), {1}));
  const double eps = node.Double("eps", 1e-5);
  node.Define(ScaleAndShift(Standardize(node, x, moments, eps),
                            ChannelVector(node, "weight", x.rank()),
                            ChannelVector(node, "bias", x.rank())));
  if (node.result_count() == 1) return true;
  const int64_t channels = x.type.shape.at(1);
  const Elements mean = Reshape(moments.mean, {channels});
  const double divisor = static_cast<double>(std::max<int64_t>(moments.count - 1, 1));
  const Elements variance =
      MapElements({Reshape(moments.deviations, {channels})},
                  [divisor](const Operands& v) { return Div(v[0], Literal(divisor, v[0]->type)); });
  node.Define(mean, 1);
  node.Define(Reshape(InverseDeviation(moments, eps), {channels}), 2);
  if (node.result_count() == 3) return true;
  const auto running_mean = node.FindTensor("running_mean");
  const auto running_var = node.FindTensor("running_var");
  if (!running_mean || !running_var) return false;
  const double momentum = node.Double("momentum", 0.1);
  node.Define(Blend(*running_mean, mean, momentum), 3);
  node.Define(Blend(*running_var, variance, momentum), 4);
  return true;
}

// Statistics given: one map.
bool LowerBatchNormInference(NodeLowering& node) {
  const Elements x = Input(node);
  const auto mean = ChannelVector(node, "running_mean", x.rank());
  const auto variance = ChannelVector(node, "running_var", x.rank());
  if (!mean || !variance) return false;
  const double eps = node.Double("eps", 1e-5);
  const DataType type = x.type.data_type;
  const Elements standard =
      MapElements({x, CastTo(*mean, type), CastTo(*variance, type)}, [eps](const Operands& v) {
        const ScalarPtr scale = Apply(Operator::kRsqrt, {Add(v[2], Literal(eps, v[2]->type))});
        return Mul(Sub(v[0], v[1]), scale);
      });
  node.Define(ScaleAndShift(standard, ChannelVector(node, "weight", x.rank()),
                            ChannelVector(node, "bias", x.rank())));
  // The native form also returns empty statistics.
  for (size_t i = 1; i < node.result_count(); ++i) {
    if (node.result_type(i).elements() != 0) return false;
    node.Define(Constant(0, node.result_type(i).data_type, node.result_type(i).shape), i);
  }
  return true;
}

bool LowerBatchNorm(NodeLowering& node) {
  return node.Bool("training", true) ? LowerBatchNormTraining(node) : LowerBatchNormInference(node);
}

}  // namespace

void AddNormOps(OpTable& table) {
  table["layer_norm"] = LowerLayerNorm;
  table["native_layer_norm"] = LowerLayerNorm;
  table["rms_norm"] = LowerRmsNorm;
  table["group_norm"] = LowerGroupNorm;
  table["instance_norm"] = LowerInstanceNorm;
  table["batch_norm"] = LowerBatchNorm;
  table["_native_batch_norm_legit_functional"] = LowerBatchNorm;
  table["_native_batch_norm_legit_no_training"] = LowerBatchNormInference;
}

}  // namespace mtmc::kernel

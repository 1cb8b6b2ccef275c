// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

using Operator = Scalar::Operator;
using Operands = std::vector<ScalarPtr>;

int64_t CountOf(const Elements& body, const std::vector<int>& dims) {
  int64_t count = 1;
  for (const int dim : dims) count *= body.type.shape.at(static_cast<size_t>(dim));
  return count;
}

// The operand in the type it is accumulated in.
Elements Accumulated(const NodeLowering& node) {
  return CastTo(node.Tensor("self"), ComputeType(node.result_type().data_type));
}

// `dim` of an op that takes one dimension, a list, or none for all.
std::vector<int> ReducedDimensions(const NodeLowering& node, int rank) {
  return node.Dimensions(node.Has("dims") ? "dims" : "dim", rank);
}

// Defines the result as the reduction of `body` alone, followed by `finish` where
// there is one.
bool DefineReduction(NodeLowering& node, const Elements& body, Combiner combiner,
                     const ScalarFunction& finish = nullptr) {
  if (body.rank() == 0) {
    node.Define(finish ? MapElements({body}, finish) : body);
    return true;
  }
  const bool is_final = !finish && body.type.data_type == node.result_type().data_type;
  const Elements reduced =
      node.Reduce(body, {.combiner = combiner,
                         .dims = ReducedDimensions(node, body.rank()),
                         .keep = node.Bool("keepdim", false),
                         .name = is_final ? node.result() : node.NameOf("total")});
  if (!is_final) node.Define(finish ? MapElements({reduced}, finish) : reduced);
  return true;
}

LowerNode Reduced(Combiner combiner) {
  return
      [combiner](NodeLowering& node) { return DefineReduction(node, Accumulated(node), combiner); };
}

LowerNode Quantified(Combiner combiner) {
  return [combiner](NodeLowering& node) {
    return DefineReduction(node, CastTo(node.Tensor("self"), DataType::kBool), combiner);
  };
}

bool LowerMean(NodeLowering& node) {
  const Elements body = Accumulated(node);
  const auto count = static_cast<double>(CountOf(body, ReducedDimensions(node, body.rank())));
  return DefineReduction(node, body, Combiner::kSum, [count](const Operands& x) {
    return Div(x[0], Literal(count, x[0]->type));
  });
}

// max and min: over everything, along a dimension with indices, or between two
// tensors.
LowerNode Extremum(Combiner value, Combiner with_index, Operator pairwise) {
  return [=](NodeLowering& node) {
    if (node.IsTensor("other")) {
      node.Define(MapElements({node.Tensor("self"), node.Tensor("other")}, [=](const Operands& x) {
        return Apply(pairwise, {x[0], x[1]});
      }));
      return true;
    }
    const Elements body = node.Tensor("self");
    if (node.result_count() == 1) return DefineReduction(node, body, value);
    if (body.rank() == 0) return false;
    node.Reduce(body, {.combiner = with_index,
                       .dims = {NodeLowering::Dimension(node.Int("dim", 0), body.rank())},
                       .keep = node.Bool("keepdim", false),
                       .name = node.node().results.at(0),
                       .second = node.node().results.at(1)});
    return true;
  };
}

LowerNode Argument(Combiner combiner) {
  return [combiner](NodeLowering& node) {
    const Elements body = node.Tensor("self");
    if (body.rank() == 0) return false;
    node.Reduce(body, {.combiner = combiner,
                       .dims = ReducedDimensions(node, body.rank()),
                       .keep = node.Bool("keepdim", false),
                       .name = node.NameOf("value"),
                       .second = node.result()});
    return true;
  };
}

// Divisor of the squared deviations; the older overloads say `unbiased`.
double VarianceDivisor(const NodeLowering& node, int64_t count) {
  const double correction =
      node.Has("unbiased") ? (node.Bool("unbiased", true) ? 1 : 0) : node.Double("correction", 1);
  return std::max(0.0, static_cast<double>(count) - correction);
}

// Results: variance or its root, then the mean where the op returns it.
LowerNode Spread(bool is_root) {
  return [is_root](NodeLowering& node) {
    const Elements body = Accumulated(node);
    if (body.rank() == 0) return false;
    const std::vector<int> dims = ReducedDimensions(node, body.rank());
    const double divisor = VarianceDivisor(node, CountOf(body, dims));
    const std::string deviations = node.NameOf("deviations");
    const Elements mean = node.Reduce(body, {.combiner = Combiner::kWelford,
                                             .dims = dims,
                                             .keep = node.Bool("keepdim", false),
                                             .name = node.NameOf("mean"),
                                             .second = deviations});
    node.Define(MapElements({node.Value(deviations)}, [&](const Operands& x) {
      const ScalarPtr variance = Div(x[0], Literal(divisor, x[0]->type));
      return is_root ? Apply(Operator::kSqrt, {variance}) : variance;
    }));
    if (node.result_count() == 2) node.Define(mean, 1);
    return true;
  };
}

bool DefineNorm(NodeLowering& node, double order) {
  const Elements self = Accumulated(node);
  const Elements magnitude =
      MapElements({self}, [](const Operands& x) { return Apply(Operator::kAbs, {x[0]}); });
  if (std::isinf(order)) {
    return DefineReduction(node, magnitude, order > 0 ? Combiner::kMax : Combiner::kMin);
  }
  if (order == 1) return DefineReduction(node, magnitude, Combiner::kSum);
  if (order == 2) {
    return DefineReduction(
        node, MapElements({self}, [](const Operands& x) { return Mul(x[0], x[0]); }),
        Combiner::kSum, [](const Operands& x) { return Apply(Operator::kSqrt, {x[0]}); });
  }
  if (order == 0) {
    return DefineReduction(node, CastTo(CastTo(self, DataType::kBool), self.type.data_type),
                           Combiner::kSum);
  }
  const auto raise = [](double power) {
    return [power](const Operands& x) {
      return Apply(Operator::kPow, {x[0], Literal(power, x[0]->type)});
    };
  };
  return DefineReduction(node, MapElements({magnitude}, raise(order)), Combiner::kSum,
                         raise(1 / order));
}

}  // namespace

void AddReductionOps(OpTable& table) {
  table["sum"] = Reduced(Combiner::kSum);
  table["prod"] = Reduced(Combiner::kProduct);
  table["amax"] = Reduced(Combiner::kMax);
  table["amin"] = Reduced(Combiner::kMin);
  table["mean"] = LowerMean;
  table["any"] = Quantified(Combiner::kAny);
  table["all"] = Quantified(Combiner::kAll);
  table["max"] = Extremum(Combiner::kMax, Combiner::kArgMax, Operator::kMax);
  table["min"] = Extremum(Combiner::kMin, Combiner::kArgMin, Operator::kMin);
  table["argmax"] = Argument(Combiner::kArgMax);
  table["argmin"] = Argument(Combiner::kArgMin);
  table["var"] = Spread(/*is_root=*/false);
  table["var_mean"] = Spread(/*is_root=*/false);
  table["std"] = Spread(/*is_root=*/true);
  table["std_mean"] = Spread(/*is_root=*/true);
  table["linalg_vector_norm"] = [](NodeLowering& node) {
    return DefineNorm(node, node.Double("ord", 2));
  };
  table["norm"] = [](NodeLowering& node) { return DefineNorm(node, node.Double("p", 2)); };
  table["frobenius_norm"] = [](NodeLowering& node) { return DefineNorm(node, 2); };
}

}  // namespace mtmc::kernel

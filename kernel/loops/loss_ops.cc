// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernel/loops/op_table.h"
#include "kernel/loops/softmax.h"

namespace mtmc::kernel {
namespace {

using Operator = Scalar::Operator;
using Operands = std::vector<ScalarPtr>;

// PyTorch's `reduction` argument.
enum { kNone = 0, kMean = 1, kSum = 2 };

ScalarPtr Number(double value, const ScalarPtr& like) { return Literal(value, like->type); }

ScalarPtr Call(Operator op, const ScalarPtr& x) { return Apply(op, {x}); }

Elements Operand(const NodeLowering& node, const char* name) {
  return CastTo(node.Tensor(name), ComputeType(node.result_type().data_type));
}

// Sum of all elements.
Elements Total(NodeLowering& node, const Elements& x, const std::string& name) {
  if (x.rank() == 0) return x;
  std::vector<int> dims(static_cast<size_t>(x.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  return node.Reduce(x, {.combiner = Combiner::kSum, .dims = dims, .name = name});
}

// Defines the result as `loss` reduced the way the node asks for.
bool DefineLoss(NodeLowering& node, const Elements& loss) {
  const int64_t reduction = node.Int("reduction", kMean);
  if (reduction == kNone) {
    node.Define(loss);
    return true;
  }
  const Elements total = Total(node, loss, node.NameOf("total"));
  const double divisor = reduction == kMean ? static_cast<double>(loss.type.elements()) : 1;
  node.Define(MapElements(
      {total}, [divisor](const Operands& v) { return Div(v[0], Number(divisor, v[0])); }));
  return true;
}

LowerNode PairLoss(const std::function<ScalarPtr(const NodeLowering& node, const ScalarPtr& x,
                                                 const ScalarPtr& target)>& body) {
  return [body](NodeLowering& node) {
    return DefineLoss(node, MapElements({Operand(node, "self"), Operand(node, "target")},
                                        [&](const Operands& v) { return body(node, v[0], v[1]); }));
  };
}

ScalarPtr SmoothL1(const NodeLowering& node, const ScalarPtr& x, const ScalarPtr& target) {
  const double beta = node.Double("beta", 1);
  const ScalarPtr distance = Call(Operator::kAbs, Sub(x, target));
  if (beta == 0) return distance;
  const ScalarPtr square = Mul(Mul(Number(0.5 / beta, x), distance), distance);
  return Select(Less(distance, Number(beta, x)), square, Sub(distance, Number(0.5 * beta, x)));
}

ScalarPtr Huber(const NodeLowering& node, const ScalarPtr& x, const ScalarPtr& target) {
  const double delta = node.Double("delta", 1);
  const ScalarPtr distance = Call(Operator::kAbs, Sub(x, target));
  const ScalarPtr linear = Mul(Number(delta, x), Sub(distance, Number(0.5 * delta, x)));
  return Select(LessEqual(distance, Number(delta, x)), Mul(Mul(Number(0.5, x), distance), distance),
                linear);
}

// target * (log(target) - x), zero where target is zero.
ScalarPtr KullbackLeibler(const NodeLowering& node, const ScalarPtr& x, const ScalarPtr& target) {
  if (node.Bool("log_target", false)) {
    return Mul(Call(Operator::kExp, target), Sub(target, x));
  }
  const ScalarPtr product = Mul(target, Sub(Call(Operator::kLog, target), x));
  return Select(Less(Number(0, x), target), product, Call(Operator::kNeg, Mul(target, x)));
}

// Logarithms are bounded by -100 as in PyTorch.
ScalarPtr BinaryCrossEntropy(const NodeLowering&, const ScalarPtr& x, const ScalarPtr& target) {
  const auto bounded = [&](const ScalarPtr& v) {
    return Apply(Operator::kMax, {v, Number(-100, x)});
  };
  const ScalarPtr on = Mul(target, bounded(Call(Operator::kLog, x)));
  const ScalarPtr off =
      Mul(Sub(Number(1, x), target), bounded(Call(Operator::kLog1p, Call(Operator::kNeg, x))));
  return Call(Operator::kNeg, Add(on, off));
}

// (1 - target) * x - log(sigmoid(x)), in the form that does not overflow.
ScalarPtr BinaryCrossEntropyWithLogits(const NodeLowering&, const ScalarPtr& x,
                                       const ScalarPtr& target) {
  const ScalarPtr tail = Call(Operator::kExp, Call(Operator::kNeg, Call(Operator::kAbs, x)));
  const ScalarPtr log_sigmoid =
      Sub(Apply(Operator::kMin, {x, Number(0, x)}), Call(Operator::kLog1p, tail));
  return Sub(Mul(Sub(Number(1, x), target), x), log_sigmoid);
}

LowerNode Unweighted(const LowerNode& lower) {
  return [lower](NodeLowering& node) {
    return !node.Has("weight") && !node.Has("pos_weight") && lower(node);
  };
}

ScalarPtr HingeEmbedding(const NodeLowering& node, const ScalarPtr& x, const ScalarPtr& target) {
  const ScalarPtr hinge =
      Apply(Operator::kMax, {Sub(Number(node.Double("margin", 1), x), x), Number(0, x)});
  const auto where = [&](double value, const ScalarPtr& then) {
    return Select(Apply(Operator::kNotEqual, {target, Number(value, x)}), then, Number(0, x));
  };
  return Add(where(1, hinge), where(-1, x));
}

// Class of a sample is dimension 1, or the only one. `loss` has the samples'
// shape: minus the log-probability of each target.
bool DefineClassLoss(NodeLowering& node, const Elements& log_probability) {
  const Elements target = node.Tensor("target");
  if (IsFloating(target.type.data_type) || node.Has("weight")) return false;
  if (node.Double("label_smoothing", 0) != 0) return false;
  const size_t class_dim = log_probability.rank() == 1 ? 0 : 1;
  const int64_t ignored = node.Int("ignore_index", -100);
  const DataType type = log_probability.type.data_type;
  const auto is_ignored = [=](const ScalarPtr& label) {
    return Apply(Operator::kEqual, {label, Index(ignored)});
  };
  const Elements labels = CastTo(target, DataType::kI64);
  const Elements loss{{type, target.type.shape}, [=](const std::vector<ScalarPtr>& indices) {
                        const ScalarPtr label = labels.at(indices);
                        std::vector<ScalarPtr> own = indices;
                        Require(class_dim <= own.size());
                        own.insert(own.begin() + static_cast<int64_t>(class_dim), label);
                        return Select(is_ignored(label), Literal(0, type),
                                      Call(Operator::kNeg, log_probability.at(own)));
                      }};
  const int64_t reduction = node.Int("reduction", kMean);
  if (reduction == kNone) {
    node.Define(loss);
    return true;
  }
  const Elements total = Total(node, loss, node.NameOf("total"));
  if (reduction == kSum) {
    node.Define(total);
    return true;
  }
  // The mean is over the samples that count.
  const Elements counted = MapElements({labels}, [=](const Operands& v) {
    return Select(is_ignored(v[0]), Literal(0, type), Literal(1, type));
  });
  const Elements count = Total(node, counted, node.NameOf("count"));
  node.Define(MapElements({total, count}, [](const Operands& v) { return Div(v[0], v[1]); }));
  return true;
}

bool LowerCrossEntropy(NodeLowering& node) {
  const Elements self = Operand(node, "self");
  if (IsFloating(node.Tensor("target").type.data_type)) return false;
  return DefineClassLoss(node, LogSoftmaxOf(node, self, self.rank() == 1 ? 0 : 1));
}

bool LowerNllLoss(NodeLowering& node) {
  return node.result_count() == 1 && DefineClassLoss(node, Operand(node, "self"));
}

Elements SumAlong(NodeLowering& node, const Elements& x, int dim, bool keep,
                  const std::string& suffix) {
  return node.Reduce(
      x, {.combiner = Combiner::kSum, .dims = {dim}, .keep = keep, .name = node.NameOf(suffix)});
}

// dot / (max(|a|, eps) max(|b|, eps)).
bool LowerCosineSimilarity(NodeLowering& node) {
  const Elements a = Operand(node, "x1");
  const Elements b = Operand(node, "x2");
  const auto product = [](const Operands& v) { return Mul(v[0], v[1]); };
  const Elements dots = MapElements({a, b}, product);
  const int dim = NodeLowering::Dimension(node.Int("dim", 1), dots.rank());
  const Elements wide_a = BroadcastTo(a, dots.type.shape);
  const Elements wide_b = BroadcastTo(b, dots.type.shape);
  const double eps = node.Double("eps", 1e-8);
  node.Define(MapElements(
      {SumAlong(node, dots, dim, false, "dot"),
       SumAlong(node, MapElements({wide_a, wide_a}, product), dim, false, "a"),
       SumAlong(node, MapElements({wide_b, wide_b}, product), dim, false, "b")},
      [eps](const Operands& v) {
        const auto length = [&](const ScalarPtr& squares) {
          return Apply(Operator::kMax, {Call(Operator::kSqrt, squares), Number(eps, v[0])});
        };
        return Div(v[0], Mul(length(v[1]), length(v[2])));
      }));
  return true;
}

// |a - b + eps| to the power p along the last dimension, before the root.
Elements PowerDistance(NodeLowering& node, const Elements& a, const Elements& b, double p,
                       double eps, bool keep, const std::string& suffix) {
  const Elements powers = MapElements({a, b}, [=](const Operands& v) {
    const ScalarPtr difference = Add(Sub(v[0], v[1]), Number(eps, v[0]));
    if (p == 2) return Mul(difference, difference);
    const ScalarPtr magnitude = Call(Operator::kAbs, difference);
    return p == 1 ? magnitude : Apply(Operator::kPow, {magnitude, Number(p, v[0])});
  });
  return SumAlong(node, powers, powers.rank() - 1, keep, suffix);
}

ScalarPtr Root(const ScalarPtr& x, double p) {
  if (p == 1) return x;
  if (p == 2) return Call(Operator::kSqrt, x);
  return Apply(Operator::kPow, {x, Number(1 / p, x)});
}

bool LowerPairwiseDistance(NodeLowering& node) {
  const double p = node.Double("p", 2);
  if (std::isinf(p) || p == 0) return false;
  const Elements powers =
      PowerDistance(node, Operand(node, "x1"), Operand(node, "x2"), p, node.Double("eps", 1e-6),
                    node.Bool("keepdim", false), "powers");
  node.Define(MapElements({powers}, [p](const Operands& v) { return Root(v[0], p); }));
  return true;
}

bool LowerTripletMarginLoss(NodeLowering& node) {
  const double p = node.Double("p", 2);
  if (std::isinf(p) || p == 0 || node.Bool("swap", false)) return false;
  const double eps = node.Double("eps", 1e-6);
  const double margin = node.Double("margin", 1);
  const Elements anchor = Operand(node, "anchor");
  const Elements near =
      PowerDistance(node, anchor, Operand(node, "positive"), p, eps, false, "positive");
  const Elements far =
      PowerDistance(node, anchor, Operand(node, "negative"), p, eps, false, "negative");
  return DefineLoss(node, MapElements({near, far}, [=](const Operands& v) {
                      const ScalarPtr gap = Sub(Root(v[0], p), Root(v[1], p));
                      return Apply(Operator::kMax, {Add(gap, Number(margin, gap)), Number(0, gap)});
                    }));
}

}  // namespace

void AddLossOps(OpTable& table) {
  table["mse_loss"] = PairLoss([](const NodeLowering&, const ScalarPtr& x, const ScalarPtr& y) {
    const ScalarPtr difference = Sub(x, y);
    return Mul(difference, difference);
  });
  table["l1_loss"] = PairLoss([](const NodeLowering&, const ScalarPtr& x, const ScalarPtr& y) {
    return Call(Operator::kAbs, Sub(x, y));
  });
  table["smooth_l1_loss"] = PairLoss(SmoothL1);
  table["huber_loss"] = PairLoss(Huber);
  table["kl_div"] = PairLoss(KullbackLeibler);
  table["soft_margin_loss"] =
      PairLoss([](const NodeLowering&, const ScalarPtr& x, const ScalarPtr& y) {
        return Call(Operator::kLog1p, Call(Operator::kExp, Call(Operator::kNeg, Mul(x, y))));
      });
  table["binary_cross_entropy"] = Unweighted(PairLoss(BinaryCrossEntropy));
  table["binary_cross_entropy_with_logits"] = Unweighted(PairLoss(BinaryCrossEntropyWithLogits));
  table["hinge_embedding_loss"] = PairLoss(HingeEmbedding);
  table["cross_entropy_loss"] = LowerCrossEntropy;
  table["nll_loss"] = LowerNllLoss;
  table["nll_loss_nd"] = LowerNllLoss;
  table["cosine_similarity"] = LowerCosineSimilarity;
  table["pairwise_distance"] = LowerPairwiseDistance;
  table["triplet_margin_loss"] = LowerTripletMarginLoss;
}

}  // namespace mtmc::kernel

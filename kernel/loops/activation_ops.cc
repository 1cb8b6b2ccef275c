// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

using Operator = Scalar::Operator;

// Activations are written once for the compute type, with `Number` literals of
// that type.
ScalarPtr Number(double value, const ScalarPtr& like) { return Literal(value, like->type); }

ScalarPtr Call(Operator op, const ScalarPtr& x) { return Apply(op, {x}); }

ScalarPtr Greater(const ScalarPtr& x, double bound) { return Less(Number(bound, x), x); }

// As PyTorch, max lets NaN through.
ScalarPtr Relu(const ScalarPtr& x) { return Apply(Operator::kMax, {x, Number(0, x)}); }

ScalarPtr Clip(const ScalarPtr& x, double low, double high) {
  return Apply(Operator::kMin, {Apply(Operator::kMax, {x, Number(low, x)}), Number(high, x)});
}

// log(1 + exp(beta x)) / beta, linear above the threshold as in PyTorch.
ScalarPtr Softplus(const ScalarPtr& x, double beta, double threshold) {
  const ScalarPtr scaled = Mul(x, Number(beta, x));
  const ScalarPtr curved =
      Div(Call(Operator::kLog1p, Call(Operator::kExp, scaled)), Number(beta, x));
  return Select(Greater(scaled, threshold), x, curved);
}

// log(sigmoid(x)) = min(x, 0) - log1p(exp(-|x|)).
ScalarPtr LogSigmoid(const ScalarPtr& x) {
  const ScalarPtr tail = Call(Operator::kExp, Call(Operator::kNeg, Call(Operator::kAbs, x)));
  return Sub(Apply(Operator::kMin, {x, Number(0, x)}), Call(Operator::kLog1p, tail));
}

ScalarPtr GeluErf(const ScalarPtr& x) {
  const ScalarPtr erf = Call(Operator::kErf, Mul(x, Number(1 / std::numbers::sqrt2, x)));
  return Mul(Mul(Number(0.5, x), x), Add(Number(1, x), erf));
}

ScalarPtr GeluTanh(const ScalarPtr& x) {
  const double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
  const ScalarPtr cube = Mul(Mul(x, x), x);
  const ScalarPtr inner = Mul(Number(beta, x), Add(x, Mul(Number(0.044715, x), cube)));
  return Mul(Mul(Number(0.5, x), x), Add(Number(1, x), Call(Operator::kTanh, inner)));
}

// For x > 0 `scale * x`, else `negative * expm1(input_scale * x)`.
ScalarPtr Elu(const ScalarPtr& x, double negative, double scale, double input_scale) {
  const ScalarPtr curved =
      Mul(Number(negative, x), Call(Operator::kExpm1, Mul(x, Number(input_scale, x))));
  return Select(Greater(x, 0), Mul(x, Number(scale, x)), curved);
}

ScalarPtr HardSigmoid(const ScalarPtr& x) {
  return Mul(Clip(Add(x, Number(3, x)), 0, 6), Number(1.0 / 6, x));
}

using Activation = std::function<ScalarPtr(const NodeLowering& node, const ScalarPtr& x)>;

LowerNode Activate(const Activation& body) {
  return [body](NodeLowering& node) {
    const Elements self = node.Tensor("self");
    const DataType type = ComputeType(node.result_type().data_type);
    node.Define(MapElements({CastTo(self, type)},
                            [&](const std::vector<ScalarPtr>& x) { return body(node, x[0]); }));
    return true;
  };
}

// PReLU's weight is one number or one per channel (dimension 1).
bool LowerPrelu(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  Elements weight = node.Tensor("weight");
  if (weight.type.elements() == 1) {
    weight = Reshape(weight, {});
  } else {
    std::vector<int64_t> shape(self.type.shape.size(), 1);
    shape.at(1) = self.type.shape.at(1);
    weight = Reshape(weight, shape);
  }
  const DataType type = ComputeType(node.result_type().data_type);
  node.Define(
      MapElements({CastTo(self, type), CastTo(weight, type)}, [](const std::vector<ScalarPtr>& x) {
        return Select(Greater(x[0], 0), x[0], Mul(x[1], x[0]));
      }));
  return true;
}

// First half times the sigmoid of the second half of `dim`.
bool LowerGlu(NodeLowering& node) {
  const Elements self = node.Tensor("self");
  const auto dim = static_cast<size_t>(NodeLowering::Dimension(node.Int("dim", -1), self.rank()));
  const int64_t half = self.type.shape.at(dim) / 2;
  node.Define({{self.type.data_type, node.result_type().shape},
               [self, dim, half](const std::vector<ScalarPtr>& indices) {
                 std::vector<ScalarPtr> gate = indices;
                 gate.at(dim) = Add(gate.at(dim), Index(half));
                 return Mul(self.at(indices), Call(Operator::kSigmoid, self.at(gate)));
               }});
  return true;
}

}  // namespace

void AddActivationOps(OpTable& table) {
  using Node = const NodeLowering&;
  using X = const ScalarPtr&;
  table["relu"] = Activate([](Node, X x) { return Relu(x); });
  table["relu6"] = Activate([](Node, X x) { return Clip(x, 0, 6); });
  table["gelu"] = Activate([](Node node, X x) {
    return node.FindText("approximate") == "tanh" ? GeluTanh(x) : GeluErf(x);
  });
  table["silu"] = Activate([](Node, X x) { return Mul(x, Call(Operator::kSigmoid, x)); });
  table["mish"] =
      Activate([](Node, X x) { return Mul(x, Call(Operator::kTanh, Softplus(x, 1, 20))); });
  table["hardswish"] = Activate([](Node, X x) { return Mul(x, HardSigmoid(x)); });
  table["hardsigmoid"] = Activate([](Node, X x) { return HardSigmoid(x); });
  table["hardtanh"] = Activate([](Node node, X x) {
    return Clip(x, node.Double("min_val", -1), node.Double("max_val", 1));
  });
  table["leaky_relu"] = Activate([](Node node, X x) {
    return Select(Greater(x, 0), x, Mul(x, Number(node.Double("negative_slope", 0.01), x)));
  });
  table["elu"] = Activate([](Node node, X x) {
    const double scale = node.Double("scale", 1);
    return Elu(x, node.Double("alpha", 1) * scale, scale, node.Double("input_scale", 1));
  });
  table["selu"] = Activate([](Node, X x) {
    const double alpha = 1.6732632423543772848170429916717;
    const double scale = 1.0507009873554804934193349852946;
    return Elu(x, alpha * scale, scale, 1);
  });
  table["celu"] = Activate([](Node node, X x) {
    const double alpha = node.Double("alpha", 1);
    return Elu(x, alpha, 1, 1 / alpha);
  });
  table["softplus"] = Activate([](Node node, X x) {
    return Softplus(x, node.Double("beta", 1), node.Double("threshold", 20));
  });
  // Not a core operator, but common as written in models.
  table["softsign"] =
      Activate([](Node, X x) { return Div(x, Add(Number(1, x), Call(Operator::kAbs, x))); });
  table["log_sigmoid"] = Activate([](Node, X x) { return LogSigmoid(x); });
  table["tanhshrink"] = Activate([](Node, X x) { return Sub(x, Call(Operator::kTanh, x)); });
  table["hardshrink"] = Activate([](Node node, X x) {
    const double bound = node.Double("lambd", 0.5);
    return Select(LessEqual(Call(Operator::kAbs, x), Number(bound, x)), Number(0, x), x);
  });
  table["softshrink"] = Activate([](Node node, X x) {
    const double bound = node.Double("lambd", 0.5);
    return Sub(x, Clip(x, -bound, bound));
  });
  table["threshold"] = Activate([](Node node, X x) {
    return Select(LessEqual(x, Number(node.Double("threshold", 0), x)),
                  Number(node.Double("value", 0), x), x);
  });
  table["prelu"] = LowerPrelu;
  table["_prelu_kernel"] = LowerPrelu;
  table["glu"] = LowerGlu;
  // Dropout that is switched off is the identity; a live one draws random
  // numbers and has no loop form.
  table["dropout"] = [](NodeLowering& node) {
    const auto self = node.FindTensor(node.Has("input") ? "input" : "self");
    if (!self || (node.Bool("train", true) && node.Double("p", 0.5) != 0)) return false;
    node.DefineMovement(*self);
    return true;
  };
}

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
// Whatever a rewrite changes, the loops of the new graph compute what those of the old one do:
// drawn graphs are interpreted before and after.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "kernel/graph/text.h"
#include "kernel/rewrite/graph_writer.h"
#include "kernel/rewrite/rewrite.h"

namespace mtmc::kernel {
namespace {

using testing::CheckEqual;
using testing::Describe;
using testing::GraphWriter;
using testing::Ints;
using testing::Rewritten;
using testing::Shape;
using testing::Tensor;
using testing::TestSeed;
using testing::Whole;

// Draws graphs: a product or convolution, linear maps, and a pooling of what they give.
class Drawing {
 public:
  explicit Drawing(unsigned seed) : random_(seed) {}

  Graph Draw() {
    const std::string product = Pick(2) == 0 ? DrawMatrixProduct() : DrawConvolution();
    const std::string mapped = DrawMaps(product);
    return writer_.Finish(DrawPooling(mapped));
  }

 private:
  int64_t Pick(int64_t count) {
    return static_cast<int64_t>(random_() % static_cast<size_t>(count));
  }

  int64_t Between(int64_t low, int64_t high) { return low + Pick(high - low + 1); }

  Shape DrawShape(int rank) {
    Shape shape;
    for (int d = 0; d < rank; ++d) shape.push_back(Between(1, 5));
    return shape;
  }

  std::string DrawMatrixProduct() {
    const int64_t depth = Between(1, 6);
    const int64_t columns = Between(1, 9);
    const int64_t kind = Pick(4);
    Shape left = DrawShape(kind < 2 ? static_cast<int>(Between(2, 4)) : 2);
    left.back() = depth;
    Shape result = left;
    result.back() = columns;
    const std::string input = writer_.Input(left);
    if (kind == 0) {
      std::vector<GraphArgument> arguments = {Tensor("input", input),
                                              Tensor("weight", writer_.Input({columns, depth}))};
      if (Pick(2) == 0) arguments.push_back(Tensor("bias", writer_.Input({columns})));
      return writer_.Add("aten::linear.default", arguments, {result});
    }
    if (kind == 1) {
      // With batches of its own, or one matrix for all.
      Shape right = left;
      right[right.size() - 2] = depth;
      right.back() = columns;
      if (Pick(2) == 0) right = {depth, columns};
      return writer_.Add("aten::matmul.default",
                         {Tensor("self", input), Tensor("other", writer_.Input(right))}, {result});
    }
    const std::string other = writer_.Input({depth, columns});
    if (kind == 2) {
      return writer_.Add("aten::mm.default", {Tensor("self", input), Tensor("mat2", other)},
                         {result});
    }
    const std::string self = writer_.Input(Pick(2) == 0 ? Shape{columns} : result);
    return writer_.Add("aten::addmm.default",
                       {Tensor("self", self), Tensor("mat1", input), Tensor("mat2", other)},
                       {result});
  }

  std::string DrawConvolution() {
    const auto dims = static_cast<size_t>(Between(1, 3));
    const bool is_transposed = Pick(2) == 0;
    const int64_t groups = Pick(3) == 0 ? 2 : 1;
    const int64_t inputs = groups * Between(1, 2);
    const int64_t outputs = groups * Between(1, 3);
    Shape input = {Between(1, 2), inputs};
    Shape kernel =
        is_transposed ? Shape{inputs, outputs / groups} : Shape{outputs, inputs / groups};
    Shape result = {input[0], outputs};
    Shape stride;
    Shape padding;
    Shape dilation;
    Shape output_padding;
    for (size_t d = 0; d < dims; ++d) {
      const int64_t taps = Between(1, 3);
      stride.push_back(Between(1, 2));
      dilation.push_back(Between(1, 2));
      padding.push_back(Pick(2));
      output_padding.push_back(Pick(std::max(stride[d], dilation[d])));
      const int64_t reach = dilation[d] * (taps - 1) + 1;
      const int64_t extent = Between(reach, 7);
      const int64_t transposed =
          (extent - 1) * stride[d] - 2 * padding[d] + reach + output_padding[d];
      const int64_t plain = (extent + 2 * padding[d] - reach) / stride[d] + 1;
      input.push_back(transposed < 1 && is_transposed ? extent + 2 : extent);
      kernel.push_back(taps);
      result.push_back(!is_transposed    ? plain
                       : transposed >= 1 ? transposed
                                         : transposed + 2 * stride[d]);
    }
    std::vector<GraphArgument> arguments = {Tensor("input", writer_.Input(input)),
                                            Tensor("weight", writer_.Input(kernel))};
    if (Pick(2) == 0) arguments.push_back(Tensor("bias", writer_.Input({outputs})));
    arguments.push_back(Ints("stride", stride));
    arguments.push_back(Ints("padding", padding));
    if (is_transposed) arguments.push_back(Ints("output_padding", output_padding));
    arguments.push_back(Ints("dilation", dilation));
    arguments.push_back(Whole("groups", groups));
    const std::string op = Concat("aten::conv", is_transposed ? "_transpose" : "", dims,
                                  is_transposed && dims > 1 ? "d.input" : "d.default");
    return writer_.Add(op, arguments, {result});
  }

  // A tensor that is broadcast to the shape, or has it.
  std::string DrawOperand(Shape shape) {
    for (int64_t& extent : shape) {
      if (Pick(2) == 0) extent = 1;
    }
    if (Pick(3) == 0)
      shape.erase(shape.begin(), shape.begin() + Pick(static_cast<int64_t>(shape.size()) + 1));
    return writer_.Input(shape);
  }

  std::string DrawMaps(std::string value) {
    for (int64_t i = Pick(4); i > 0; --i) value = DrawMap(value);
    return value;
  }

  std::string DrawMap(const std::string& value) {
    const Shape shape = writer_.ShapeOf(value);
    const auto rank = static_cast<int64_t>(shape.size());
    switch (Pick(7)) {
      case 0:
        return writer_.Add("aten::neg.default", {Tensor("self", value)}, {shape});
      case 1:
        return writer_.Add("aten::div.Tensor",
                           {Tensor("self", value), {"other", 2.0 + static_cast<double>(Pick(3))}},
                           {shape});
      case 2:
        return writer_.Add("aten::add.Tensor",
                           {Tensor("self", value), {"other", 1.5}, Whole("alpha", 1)}, {shape});
      case 3: {
        const int64_t axis = Pick(rank + 1);
        Shape longer = shape;
        longer.insert(longer.begin() + axis, 1);
        return writer_.Add("aten::unsqueeze.default", {Tensor("self", value), Whole("dim", axis)},
                           {longer});
      }
      case 4: {
        const int64_t first = Pick(rank);
        const int64_t second = Pick(rank);
        Shape swapped = shape;
        std::swap(swapped[static_cast<size_t>(first)], swapped[static_cast<size_t>(second)]);
        return writer_.Add("aten::transpose.int",
                           {Tensor("self", value), Whole("dim0", first), Whole("dim1", second)},
                           {swapped});
      }
      default: {
        const char* const ops[] = {"aten::mul.Tensor", "aten::add.Tensor", "aten::sub.Tensor"};
        const std::string op = ops[Pick(3)];
        const std::string operand = DrawOperand(shape);
        // Which one comes first.
        const bool is_turned = Pick(2) == 0;
        return writer_.Add(op,
                           {Tensor("self", is_turned ? operand : value),
                            Tensor("other", is_turned ? value : operand)},
                           {shape});
      }
    }
  }

  std::string DrawPooling(const std::string& value) {
    const Shape shape = writer_.ShapeOf(value);
    if (Pick(3) > 0 || shape.size() < 2) return DrawReduction(value);
    const auto dims = static_cast<size_t>(
        Between(1, std::min<int64_t>(3, static_cast<int64_t>(shape.size()) - 1)));
    Shape window;
    Shape step;
    Shape pooled = shape;
    for (size_t d = shape.size() - dims; d < shape.size(); ++d) {
      window.push_back(Between(1, std::min<int64_t>(4, shape[d])));
      step.push_back(Between(1, 4));
      pooled[d] = (shape[d] - window.back()) / step.back() + 1;
    }
    // The operator takes one or two leading axes.
    if (shape.size() > dims + 2) return DrawReduction(value);
    return writer_.Add(Concat("aten::avg_pool", dims, "d.default"),
                       {Tensor("self", value), Ints("kernel_size", window), Ints("stride", step)},
                       {pooled});
  }

  std::string DrawReduction(const std::string& value) {
    const Shape shape = writer_.ShapeOf(value);
    Shape axes;
    Shape kept = shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (Pick(2) == 0) axes.push_back(static_cast<int64_t>(d));
    }
    if (axes.empty()) axes.push_back(static_cast<int64_t>(shape.size()) - 1);
    const bool keeps = Pick(2) == 0;
    for (const int64_t axis : axes) kept[static_cast<size_t>(axis)] = keeps ? 1 : -1;
    kept.erase(std::remove(kept.begin(), kept.end(), -1), kept.end());
    return writer_.Add(Pick(2) == 0 ? "aten::sum.dim_IntList" : "aten::mean.dim",
                       {Tensor("self", value), Ints("dim", axes), {"keepdim", keeps}}, {kept});
  }

  std::mt19937 random_;
  GraphWriter writer_;
};

TEST_CASE("Drawn graphs compute the same after every rewrite", "[rewrite]") {
  constexpr unsigned kGraphs = 6000;
  int rewritten = 0;
  for (unsigned i = 0; i < kGraphs; ++i) {
    const unsigned seed = TestSeed() * 1000003 + i;
    const Graph graph = Drawing(seed).Draw();
    const std::vector<RewriteStep> steps = FindAllRewriteSteps(graph);
    if (steps.empty()) continue;
    ++rewritten;
    const absl::StatusOr<Graph> after = ApplyRewrites(graph, steps);
    INFO("seed " << seed << "\n" << Describe(graph));
    REQUIRE(after.ok());
    INFO("rewritten\n" << Describe(*after));
    CheckEqual(graph, *after, seed);
  }
  // What is drawn is what the rules are for.
  CHECK(rewritten > static_cast<int>(kGraphs) / 4);
}

// Products of three matrices, or two linear layers, of drawn sizes.
Graph DrawChain(std::mt19937& random) {
  const auto extent = [&random] { return static_cast<int64_t>(1 + random() % 8); };
  GraphWriter writer;
  const int64_t a = extent();
  const int64_t b = extent();
  const int64_t c = extent();
  const int64_t d = extent();
  if (random() % 3 == 0) {
    const auto linear = [&](const std::string& input, int64_t in, int64_t out) {
      std::vector<GraphArgument> arguments = {Tensor("input", input),
                                              Tensor("weight", writer.Input({out, in}))};
      if (random() % 2 == 0) arguments.push_back(Tensor("bias", writer.Input({out})));
      return writer.Add("aten::linear.default", arguments, {{2, a, out}});
    };
    return writer.Finish(linear(linear(writer.Input({2, a, b}), b, c), c, d));
  }
  const auto product = [&](const std::string& left, const std::string& right) {
    const Shape shape = {3, writer.ShapeOf(left)[1], writer.ShapeOf(right)[2]};
    return writer.Add("aten::matmul.default", {Tensor("self", left), Tensor("other", right)},
                      {shape});
  };
  const std::string first = writer.Input({3, a, b});
  const std::string second = writer.Input({3, b, c});
  const std::string third = writer.Input({3, c, d});
  if (random() % 2 == 0) return writer.Finish(product(product(first, second), third));
  return writer.Finish(product(first, product(second, third)));
}

TEST_CASE("Chains of products are taken in the cheaper order", "[rewrite]") {
  std::mt19937 random(TestSeed());
  int rewritten = 0;
  for (int i = 0; i < 500; ++i) {
    const Graph graph = DrawChain(random);
    const std::vector<RewriteStep> steps = FindAllRewriteSteps(graph);
    if (steps.empty()) continue;
    ++rewritten;
    // Never back again.
    CHECK(steps.size() == 1);
    INFO(Describe(graph));
    Rewritten(graph);
  }
  CHECK(rewritten > 100);
}

// A transposed convolution of drawn sizes over one to three axes.
Graph DrawTransposed(std::mt19937& random) {
  const auto pick = [&random](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<unsigned>(high - low + 1));
  };
  GraphWriter writer;
  const auto dims = static_cast<size_t>(pick(1, 3));
  const int64_t groups = pick(1, 2);
  Shape input = {pick(1, 2), groups * pick(1, 2)};
  const int64_t outputs = pick(1, 3);
  Shape weight = {input.at(1), outputs};
  Shape result = {input.at(0), groups * outputs};
  Shape stride;
  Shape padding;
  Shape output_padding;
  Shape dilation;
  for (size_t d = 0; d < dims; ++d) {
    input.push_back(pick(1, 4));
    weight.push_back(pick(1, 4));
    stride.push_back(pick(1, 5));
    dilation.push_back(pick(0, 1) == 0 ? 1 : pick(2, 4));
    const int64_t reach = dilation.back() * (weight.back() - 1) + 1;
    const int64_t full = (input.back() - 1) * stride.back() + reach;
    padding.push_back(pick(0, std::min<int64_t>(3, (full - 1) / 2)));
    output_padding.push_back(pick(0, std::max(stride.back(), dilation.back()) - 1));
    result.push_back(full - 2 * padding.back() + output_padding.back());
  }
  const std::string x = writer.Input(input);
  std::vector<GraphArgument> arguments = {Tensor("input", x),
                                          Tensor("weight", writer.Input(weight))};
  if (random() % 2 == 0) arguments.push_back(Tensor("bias", writer.Input({result.at(1)})));
  arguments.insert(arguments.end(), {Ints("stride", stride), Ints("padding", padding),
                                     Ints("output_padding", output_padding),
                                     Whole("groups", groups), Ints("dilation", dilation)});
  const std::string op = dims == 1 ? "aten::conv_transpose1d.default"
                                   : Concat("aten::conv_transpose", dims, "d.input");
  return writer.Finish(writer.Add(op, arguments, {result}));
}

// Whether taps lie apart, and outputs, along one axis of the only node.
bool IsStridedAndDilated(const Graph& graph) {
  const auto numbers = [&graph](std::string_view name) {
    std::vector<int64_t> found;
    for (const GraphArgument& each :
         std::get<std::vector<GraphArgument>>(graph.nodes.front().FindArgument(name)->value)) {
      found.push_back(std::get<int64_t>(each.value));
    }
    return found;
  };
  const std::vector<int64_t> stride = numbers("stride");
  const std::vector<int64_t> dilation = numbers("dilation");
  for (size_t d = 0; d < stride.size(); ++d) {
    if (stride[d] > 1 && dilation[d] > 1) return true;
  }
  return false;
}

TEST_CASE("Transposed convolutions are plain ones", "[rewrite]") {
  constexpr int kGraphs = 300;
  std::mt19937 random(TestSeed());
  int rewritten = 0;
  int apart = 0;
  for (int i = 0; i < kGraphs; ++i) {
    const Graph graph = DrawTransposed(random);
    INFO("graph " << i << "\n" << Describe(graph));
    const Graph after = Rewritten(graph);
    const bool is_plain = after.nodes.back().op.find("conv_transpose") == std::string::npos;
    rewritten += is_plain ? 1 : 0;
    apart += is_plain && IsStridedAndDilated(graph) ? 1 : 0;
  }
  CHECK(rewritten > kGraphs / 4);
  CHECK(apart > kGraphs / 20);
}

}  // namespace
}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
// Whatever a rewrite changes, the loops of the new graph compute what those of the old one do:
// drawn graphs are interpreted in double precision before and after.
#include "kernel/rewrite/rewrite.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "kernel/graph/text.h"
#include "kernel/loops/interpreter.h"
#include "kernel/loops/loop.h"

namespace mtmc::kernel {
namespace {

using Shape = std::vector<int64_t>;

GraphArgument Tensor(std::string name, const std::string& value) {
  return {std::move(name), ValueArgument{value}};
}

GraphArgument Whole(std::string name, int64_t value) { return {std::move(name), value}; }

GraphArgument Ints(std::string name, const Shape& values) {
  std::vector<GraphArgument> list;
  for (const int64_t value : values) list.push_back({"", value});
  return {std::move(name), std::move(list)};
}

// Writes a graph operator by operator.
class Writer {
 public:
  std::string Input(const Shape& shape) {
    std::string name = Concat("x", graph_.inputs.size());
    graph_.inputs.push_back({.name = name, .type = {DataType::kF32, shape}});
    return name;
  }

  std::string Add(const std::string& op, std::vector<GraphArgument> arguments,
                  std::vector<Shape> shapes) {
    GraphNode node{.name = Concat("n", graph_.nodes.size()), .op = op};
    node.arguments = std::move(arguments);
    for (size_t i = 0; i < shapes.size(); ++i) {
      node.results.push_back(i == 0 ? node.name : Concat(node.name, "_r", i));
      node.result_types.push_back({DataType::kF32, shapes[i]});
    }
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back().name;
  }

  const Shape& ShapeOf(const std::string& value) const { return graph_.FindType(value)->shape; }

  Graph Finish(const std::string& value) {
    graph_.outputs = {{.name = "y", .value = value, .type = *graph_.FindType(value)}};
    return std::move(graph_);
  }

 private:
  Graph graph_;
};

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
  Writer writer_;
};

std::vector<double> Evaluate(const Graph& graph, unsigned seed) {
  const absl::StatusOr<LoopNest> nest = LowerToLoops(graph);
  REQUIRE(nest.ok());
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  HostTensors inputs;
  for (const GraphInput& input : graph.inputs) {
    HostTensor tensor{input.type, {}};
    for (int64_t i = 0; i < input.type.elements(); ++i) tensor.values.push_back(normal(random));
    inputs.emplace(input.name, std::move(tensor));
  }
  const absl::StatusOr<HostTensors> values = Interpret(*nest, std::move(inputs));
  INFO(values.status());
  REQUIRE(values.ok());
  const HostTensor& output = values->find(graph.outputs[0].value)->second;
  REQUIRE(output.type == graph.outputs[0].type);
  return output.values;
}

// Literals are rounded to f32, so that 1 / 3 differs by as much.
constexpr double kTolerance = 1e-6;

void CheckEqual(const Graph& before, const Graph& after, unsigned seed) {
  const std::vector<double> expected = Evaluate(before, seed);
  const std::vector<double> got = Evaluate(after, seed);
  REQUIRE(got.size() == expected.size());
  double largest = 1;
  double error = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    error = std::max(error, std::fabs(got[i] - expected[i]));
  }
  CHECK(error <= kTolerance * largest);
}

std::string Describe(const Graph& graph) {
  std::string text;
  for (const GraphNode& node : graph.nodes) {
    Append(text, node.name, " = ", node.op, " ", ToText(node.result_types[0]), "\n");
  }
  return text;
}

unsigned SeedOfTheDay() {
  const char* seed = std::getenv("MTMC_TEST_SEED");
  return seed == nullptr ? 1 : static_cast<unsigned>(std::atoi(seed));
}

TEST_CASE("Drawn graphs compute the same after every rewrite", "[rewrite]") {
  constexpr unsigned kGraphs = 6000;
  int rewritten = 0;
  for (unsigned i = 0; i < kGraphs; ++i) {
    const unsigned seed = SeedOfTheDay() * 1000003 + i;
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

// sum of x @ w over its columns
std::string SummedProduct(Writer& writer) {
  const std::string product = writer.Add(
      "aten::mm.default",
      {Tensor("self", writer.Input({4, 3})), Tensor("mat2", writer.Input({3, 5}))}, {{4, 5}});
  return writer.Add("aten::sum.dim_IntList",
                    {Tensor("self", product), Ints("dim", {1}), {"keepdim", false}}, {{4}});
}

std::vector<std::string> OperatorsOf(const Graph& graph) {
  std::vector<std::string> operators;
  for (const GraphNode& node : graph.nodes) operators.push_back(node.op);
  return operators;
}

// The graph after all rewrites, which compute the same.
Graph Rewritten(const Graph& graph) {
  const absl::StatusOr<Graph> after = ApplyRewrites(graph, FindAllRewriteSteps(graph));
  REQUIRE(after.ok());
  CheckEqual(graph, *after, 7);
  return *after;
}

TEST_CASE("A sum over columns is taken in the second factor", "[rewrite]") {
  Writer writer;
  const std::string sum = SummedProduct(writer);
  const Graph after = Rewritten(writer.Finish(sum));

  CHECK(OperatorsOf(after) == std::vector<std::string>{"aten::sum.dim_IntList", "aten::mm.default",
                                                       "aten::reshape.default"});
  CHECK(after.nodes[1].result_types[0].shape == Shape{4, 1});
}

TEST_CASE("A product that somebody else reads is left alone", "[rewrite]") {
  Writer writer;
  const std::string sum = SummedProduct(writer);
  Graph graph = writer.Finish(sum);
  graph.outputs.push_back({.name = "z", .value = "n0", .type = *graph.FindType("n0")});

  CHECK(FindRewriteSteps(graph).empty());
}

TEST_CASE("Windows of a convolution are taken in its weight, or in its input where it is wide",
          "[rewrite]") {
  const int64_t outputs = GENERATE(4, 900);
  Writer writer;
  const std::string convolution =
      writer.Add("aten::conv2d.default",
                 {Tensor("input", writer.Input({1, 2, 14, 14})),
                  Tensor("weight", writer.Input({outputs, 2, 3, 3})), Ints("padding", {1, 1})},
                 {{1, outputs, 14, 14}});
  const std::string pooled =
      writer.Add("aten::avg_pool2d.default",
                 {Tensor("self", convolution), Ints("kernel_size", {4, 4})}, {{1, outputs, 3, 3}});

  const Graph after = Rewritten(writer.Finish(pooled));

  const GraphNode& smaller = after.nodes.back();
  REQUIRE(smaller.op == "aten::conv2d.default");
  CHECK(smaller.result_types[0].shape == Shape{1, outputs, 3, 3});
  const auto shape_of = [&](const char* name) {
    return after.FindType(std::get<ValueArgument>(smaller.FindArgument(name)->value).name)->shape;
  };
  CHECK(shape_of("weight").back() == (outputs == 4 ? 6 : 3));
  CHECK(shape_of("input").back() == (outputs == 4 ? 14 : 13));
}

TEST_CASE("Few sums of many products save nothing", "[rewrite]") {
  Writer writer;
  const std::string product = writer.Add(
      "aten::mm.default",
      {Tensor("self", writer.Input({4, 3})), Tensor("mat2", writer.Input({3, 7}))}, {{4, 7}});
  // Windows that overlap: six sums of seven columns.
  const std::string pooled = writer.Add(
      "aten::avg_pool1d.default",
      {Tensor("self", product), Ints("kernel_size", {2}), Ints("stride", {1})}, {{4, 6}});

  CHECK(FindRewriteSteps(writer.Finish(pooled)).empty());
}

TEST_CASE("The largest of one element is that element, unless its place is asked for",
          "[rewrite]") {
  Writer writer;
  const std::string largest = writer.Add(
      "aten::max.dim", {Tensor("self", writer.Input({4, 1})), Whole("dim", 1)}, {{4}, {4}});
  Graph graph = writer.Finish(largest);
  CHECK(OperatorsOf(Rewritten(graph)) == std::vector<std::string>{"aten::reshape.default"});

  graph.outputs.push_back({.name = "i", .value = "n0_r1", .type = *graph.FindType("n0_r1")});
  CHECK(FindRewriteSteps(graph).empty());
}

TEST_CASE("A softmax over one element is one", "[rewrite]") {
  Writer writer;
  const std::string one = writer.Add(
      "aten::softmax.int", {Tensor("self", writer.Input({4, 1})), Whole("dim", -1)}, {{4, 1}});

  CHECK(OperatorsOf(Rewritten(writer.Finish(one))) ==
        std::vector<std::string>{"aten::full.default"});
}

TEST_CASE("A value less itself is zero, and what made it goes", "[rewrite]") {
  Writer writer;
  const std::string product = SummedProduct(writer);
  const std::string zero =
      writer.Add("aten::sub.Tensor", {Tensor("self", product), Tensor("other", product)}, {{4}});

  CHECK(OperatorsOf(Rewritten(writer.Finish(zero))) ==
        std::vector<std::string>{"aten::full.default"});
}

TEST_CASE("A product with a diagonal matrix scales", "[rewrite]") {
  const bool is_left = GENERATE(false, true);
  Writer writer;
  const std::string diagonal = writer.Add(
      "aten::diag.default", {Tensor("self", writer.Input({4})), Whole("diagonal", 0)}, {{4, 4}});
  const std::string other = writer.Input(is_left ? Shape{4, 5} : Shape{5, 4});
  const std::string product = writer.Add(
      "aten::matmul.default",
      {Tensor("self", is_left ? diagonal : other), Tensor("other", is_left ? other : diagonal)},
      {is_left ? Shape{4, 5} : Shape{5, 4}});

  const Graph after = Rewritten(writer.Finish(product));

  CHECK(after.nodes.back().op == "aten::mul.Tensor");
}

// Products of three matrices, or two linear layers, of drawn sizes.
Graph DrawChain(std::mt19937& random) {
  const auto extent = [&random] { return static_cast<int64_t>(1 + random() % 8); };
  Writer writer;
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
  std::mt19937 random(SeedOfTheDay());
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

TEST_CASE("A triangle of a product is made of blocks of rows", "[rewrite]") {
  const bool is_upper = GENERATE(false, true);
  const int64_t diagonal = GENERATE(-3, 0, 5);
  const int64_t rows = GENERATE(256, 301);
  CAPTURE(is_upper, diagonal, rows);
  Writer writer;
  const std::string product = writer.Add(
      "aten::bmm.default",
      {Tensor("self", writer.Input({2, rows, 2})), Tensor("mat2", writer.Input({2, 2, 270}))},
      {{2, rows, 270}});
  const std::string triangle =
      writer.Add(is_upper ? "aten::triu.default" : "aten::tril.default",
                 {Tensor("self", product), Whole("diagonal", diagonal)}, {{2, rows, 270}});

  const Graph after = Rewritten(writer.Finish(triangle));

  const std::vector<std::string> operators = OperatorsOf(after);
  CHECK(std::count(operators.begin(), operators.end(), "aten::matmul.default") == 4);
}

TEST_CASE("A triangle that is most of a product is left alone", "[rewrite]") {
  Writer writer;
  const std::string product =
      writer.Add("aten::mm.default",
                 {Tensor("self", writer.Input({256, 2})), Tensor("mat2", writer.Input({2, 256}))},
                 {{256, 256}});
  const std::string triangle = writer.Add(
      "aten::triu.default", {Tensor("self", product), Whole("diagonal", -200)}, {{256, 256}});

  CHECK(FindRewriteSteps(writer.Finish(triangle)).empty());
}

TEST_CASE("Random numbers are drawn whether or not anybody reads them", "[rewrite]") {
  Writer writer;
  const std::string random =
      writer.Add("aten::rand_like.default", {Tensor("self", writer.Input({4}))}, {{4}});
  const std::string zero =
      writer.Add("aten::sub.Tensor", {Tensor("self", random), Tensor("other", random)}, {{4}});
  const Graph graph = writer.Finish(zero);

  const absl::StatusOr<Graph> after = ApplyRewrites(graph, FindAllRewriteSteps(graph));

  REQUIRE(after.ok());
  CHECK(OperatorsOf(*after) ==
        std::vector<std::string>{"aten::rand_like.default", "aten::full.default"});
}

TEST_CASE("A step that cannot be taken is refused by name", "[rewrite]") {
  Writer writer;
  const std::string sum = SummedProduct(writer);
  const Graph graph = writer.Finish(sum);
  const RewriteStep step = GENERATE(RewriteStep{"reduce_first", "n0"},
                                    RewriteStep{"reduce_first", "n9"}, RewriteStep{"other", "n1"});

  const absl::StatusOr<Graph> after = ApplyRewrites(graph, std::vector{step});

  CHECK(absl::IsInvalidArgument(after.status()));
}

}  // namespace
}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/rewrite/rewrite.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernel/rewrite/graph_writer.h"

namespace mtmc::kernel {
namespace {

using testing::GraphWriter;
using testing::Ints;
using testing::Rewritten;
using testing::Shape;
using testing::Tensor;
using testing::Whole;

// sum of x @ w over its columns
std::string SummedProduct(GraphWriter& writer) {
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

TEST_CASE("A sum over columns is taken in the second factor", "[rewrite]") {
  GraphWriter writer;
  const std::string sum = SummedProduct(writer);
  const Graph after = Rewritten(writer.Finish(sum));

  CHECK(OperatorsOf(after) == std::vector<std::string>{"aten::sum.dim_IntList", "aten::mm.default",
                                                       "aten::reshape.default"});
  CHECK(after.nodes[1].result_types[0].shape == Shape{4, 1});
}

TEST_CASE("A product that somebody else reads is left alone", "[rewrite]") {
  GraphWriter writer;
  const std::string sum = SummedProduct(writer);
  Graph graph = writer.Finish(sum);
  graph.outputs.push_back({.name = "z", .value = "n0", .type = *graph.FindType("n0")});

  CHECK(FindRewriteSteps(graph).empty());
}

TEST_CASE("Windows of a convolution are taken in its weight, or in its input where it is wide",
          "[rewrite]") {
  const int64_t outputs = GENERATE(4, 900);
  GraphWriter writer;
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
  GraphWriter writer;
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
  GraphWriter writer;
  const std::string largest = writer.Add(
      "aten::max.dim", {Tensor("self", writer.Input({4, 1})), Whole("dim", 1)}, {{4}, {4}});
  Graph graph = writer.Finish(largest);
  CHECK(OperatorsOf(Rewritten(graph)) == std::vector<std::string>{"aten::reshape.default"});

  graph.outputs.push_back({.name = "i", .value = "n0_r1", .type = *graph.FindType("n0_r1")});
  CHECK(FindRewriteSteps(graph).empty());
}

TEST_CASE("A softmax over one element is one", "[rewrite]") {
  GraphWriter writer;
  const std::string one = writer.Add(
      "aten::softmax.int", {Tensor("self", writer.Input({4, 1})), Whole("dim", -1)}, {{4, 1}});

  CHECK(OperatorsOf(Rewritten(writer.Finish(one))) ==
        std::vector<std::string>{"aten::full.default"});
}

TEST_CASE("A value less itself is zero, and what made it goes", "[rewrite]") {
  GraphWriter writer;
  const std::string product = SummedProduct(writer);
  const std::string zero =
      writer.Add("aten::sub.Tensor", {Tensor("self", product), Tensor("other", product)}, {{4}});

  CHECK(OperatorsOf(Rewritten(writer.Finish(zero))) ==
        std::vector<std::string>{"aten::full.default"});
}

TEST_CASE("A product with a diagonal matrix scales", "[rewrite]") {
  const bool is_left = GENERATE(false, true);
  GraphWriter writer;
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

TEST_CASE("A triangle of a product is made of blocks of rows", "[rewrite]") {
  const bool is_upper = GENERATE(false, true);
  const int64_t diagonal = GENERATE(-3, 0, 5);
  const int64_t rows = GENERATE(256, 301);
  CAPTURE(is_upper, diagonal, rows);
  GraphWriter writer;
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
  GraphWriter writer;
  const std::string product =
      writer.Add("aten::mm.default",
                 {Tensor("self", writer.Input({256, 2})), Tensor("mat2", writer.Input({2, 256}))},
                 {{256, 256}});
  const std::string triangle = writer.Add(
      "aten::triu.default", {Tensor("self", product), Whole("diagonal", -200)}, {{256, 256}});

  CHECK(FindRewriteSteps(writer.Finish(triangle)).empty());
}

TEST_CASE("Random numbers are drawn whether or not anybody reads them", "[rewrite]") {
  GraphWriter writer;
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
  GraphWriter writer;
  const std::string sum = SummedProduct(writer);
  const Graph graph = writer.Finish(sum);
  const RewriteStep step = GENERATE(RewriteStep{"reduce_first", "n0"},
                                    RewriteStep{"reduce_first", "n9"}, RewriteStep{"other", "n1"});

  const absl::StatusOr<Graph> after = ApplyRewrites(graph, std::vector{step});

  CHECK(absl::IsInvalidArgument(after.status()));
}

}  // namespace
}  // namespace mtmc::kernel

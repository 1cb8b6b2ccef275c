// SPDX-License-Identifier: Apache-2.0
// Networks compute with channels last what they compute with channels first: drawn ones are
// interpreted before and after.
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
using testing::Shape;
using testing::Tensor;
using testing::TestSeed;
using testing::Whole;

// A small network of convolutions, transposed or not, over one to three axes: each reads what an
// activation or a sum of earlier values makes, some read the same value.
class Network {
 public:
  explicit Network(unsigned seed) : random_(seed) {}

  Graph Draw() {
    const int64_t dims = Between(1, 3);
    Shape shape = {Between(1, 2), Between(1, 4)};
    for (int64_t d = 0; d < dims; ++d) shape.push_back(Between(3, 6));
    values_ = {writer_.Input(shape)};
    const int64_t layers = Between(1, 4);
    for (int64_t i = 0; i < layers; ++i) {
      // One of the last two.
      const size_t back = 1 + random_() % std::min<size_t>(values_.size(), 2);
      const std::string from = values_[values_.size() - back];
      values_.push_back(DrawConvolution(from));
      if (random_() % 2 == 0) values_.push_back(DrawMap(values_.back()));
      if (dims > 1 && random_() % 3 == 0) values_.push_back(DrawPooling(values_.back()));
    }
    return writer_.Finish(values_.back());
  }

 private:
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<unsigned>(high - low + 1));
  }

  std::string DrawConvolution(const std::string& value) {
    const Shape input = writer_.ShapeOf(value);
    const size_t dims = input.size() - 2;
    const bool is_transposed = random_() % 3 == 0;
    const int64_t groups = input[1] % 2 == 0 && random_() % 3 == 0 ? 2 : 1;
    const int64_t outputs = groups * Between(1, 3);
    Shape weight = {is_transposed ? input[1] : outputs,
                    (is_transposed ? outputs : input[1]) / groups};
    Shape result = {input[0], outputs};
    Shape stride;
    Shape padding;
    Shape dilation;
    for (size_t d = 0; d < dims; ++d) {
      stride.push_back(Between(1, 2));
      padding.push_back(Between(0, 1));
      weight.push_back(Between(1, 3));
      dilation.push_back(1);
      const int64_t extent = input[d + 2];
      const int64_t plain = (extent + 2 * padding[d] - weight[d + 2]) / stride[d] + 1;
      const int64_t spread = (extent - 1) * stride[d] + weight[d + 2] - 2 * padding[d];
      if ((is_transposed ? spread : extent + 2 * padding[d] - weight[d + 2] + 1) < 1) return value;
      result.push_back(is_transposed ? spread : plain);
    }
    std::vector<GraphArgument> arguments = {Tensor("input", value),
                                            Tensor("weight", writer_.Input(weight))};
    if (random_() % 2 == 0) arguments.push_back(Tensor("bias", writer_.Input({outputs})));
    arguments.insert(arguments.end(), {Ints("stride", stride), Ints("padding", padding),
                                       Whole("groups", groups), Ints("dilation", dilation)});
    const std::string op = Concat("aten::conv", is_transposed ? "_transpose" : "", dims, "d.",
                                  is_transposed && dims > 1 ? "input" : "default");
    return writer_.Add(op, arguments, {result});
  }

  std::string DrawPooling(const std::string& value) {
    Shape shape = writer_.ShapeOf(value);
    Shape window;
    Shape stride;
    Shape padding;
    for (size_t d = 2; d < shape.size(); ++d) {
      window.push_back(Between(1, 3));
      stride.push_back(Between(1, 2));
      padding.push_back(Between(0, window.back() / 2));
      shape[d] = (shape[d] + 2 * padding.back() - window.back()) / stride.back() + 1;
      if (shape[d] < 1) return value;
    }
    return writer_.Add(Concat(random_() % 2 == 0 ? "aten::max_pool" : "aten::avg_pool",
                              shape.size() - 2, "d.default"),
                       {Tensor("self", value), Ints("kernel_size", window), Ints("stride", stride),
                        Ints("padding", padding)},
                       {shape});
  }

  std::string DrawMap(const std::string& value) {
    const Shape& shape = writer_.ShapeOf(value);
    for (const std::string& other : values_) {
      if (other == value || writer_.ShapeOf(other) != shape || random_() % 2 == 0) continue;
      return writer_.Add("aten::add.Tensor",
                         {Tensor("self", value), Tensor("other", other), Whole("alpha", 1)},
                         {shape});
    }
    return writer_.Add("aten::relu.default", {Tensor("self", value)}, {shape});
  }

  std::mt19937 random_;
  GraphWriter writer_;
  std::vector<std::string> values_;
};

TEST_CASE("Convolutions compute the same with channels last", "[rewrite]") {
  constexpr unsigned kGraphs = 200;
  unsigned changed = 0;
  for (unsigned i = 0; i < kGraphs; ++i) {
    const unsigned seed = TestSeed() * 1000003 + i;
    const Graph graph = Network(seed).Draw();
    const std::vector<RewriteStep> steps = FindAllRewriteSteps(graph, Rewrite::Kind::kLayout);
    INFO("seed " << seed << "\n" << Describe(graph));
    const absl::StatusOr<Graph> after = ApplyRewrites(graph, steps);
    REQUIRE(after.ok());
    INFO("with channels last\n" << Describe(*after));
    for (const GraphNode& node : after->nodes) CHECK_FALSE(node.op.starts_with("aten::conv"));
    changed += steps.empty() ? 0 : 1;
    CheckEqual(graph, *after, seed);
  }
  CHECK(changed > kGraphs / 2);
}

}  // namespace
}  // namespace mtmc::kernel

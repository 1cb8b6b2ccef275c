// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/row/row_start.h"

#include <catch2/catch.hpp>
#include <random>

#include "kernel/graph/text.h"
#include "kernel/templates/row/row_knobs.h"
#include "kernel/templates/template_registry.h"
#include "kernel/view/group_kind.h"

namespace mtmc::kernel {
namespace {

constexpr int64_t kUnits = 132;

EmitTarget Gpu() {
  return {.dialect = Dialect::kCuda, .shared_bytes_per_block = 227 * 1024, .compute_units = kUnits};
}

GraphArgument Pair(const std::string& name, int64_t each) {
  return {name, std::vector<GraphArgument>{{"", each}, {"", each}}};
}

// One operator over x, whose result has the shape given.
class Group {
 public:
  Group(const std::string& op, std::vector<GraphArgument> arguments, std::vector<int64_t> x,
        std::vector<int64_t> result) {
    const TensorType type{.data_type = DataType::kF32, .shape = std::move(result)};
    graph_.inputs = {{.name = "x", .type = {.data_type = DataType::kF32, .shape = std::move(x)}}};
    arguments.insert(arguments.begin(), {"self", ValueArgument{"x"}});
    graph_.nodes = {{.name = "y",
                     .op = op,
                     .arguments = std::move(arguments),
                     .results = {"y"},
                     .result_types = {type}}};
    graph_.outputs = {{.name = "out", .value = "y", .type = type}};
    nest_ = *LowerToLoops(graph_);
    group_ = ParseSchedule("group y template=row nodes=y")->groups[0];
    group_ = WithAllKnobs(View(), Gpu());
  }

  GroupView View() const { return kernel::ViewOf(graph_, nest_, NestIndex(graph_, nest_), group_); }

  // With the knobs that a job starts with, which are legal.
  RowMapping Start() {
    group_.knobs = TemplateOf(group_).starting_knobs(View(), Gpu());
    REQUIRE(CheckGroup(View(), Gpu(), {}).ok());
    return RowKnobs().Read(View());
  }

 private:
  Graph graph_;
  LoopNest nest_;
  KernelGroup group_;
};

Group Softmax(const std::vector<int64_t>& shape, int64_t dim) {
  return Group("aten::softmax.int", {{"dim", dim}}, shape, shape);
}

TEST_CASE("Rows start with as many threads as their length and number ask for") {
  SECTION("short ones are shared by a few threads, many to a block") {
    const RowMapping start = Softmax({200000, 48}, 1).Start();
    CHECK(start.by_row == 1);
    CHECK(start.depth == 4);
    CHECK(Softmax({200000, 5}, 1).Start().depth == 1);
    CHECK(Softmax({200000, 196}, 1).Start().depth == 16);
  }
  SECTION("a few short ones keep a warp each") { CHECK(Softmax({200, 48}, 1).Start().by_row == 0); }
  SECTION("no thread of a block is without work") {
    for (const int64_t columns : {260, 384, 512, 1000, 4096}) {
      const RowMapping start = Softmax({50000, columns}, 1).Start();
      CHECK(start.block * start.vector <= std::max<int64_t>(columns, 32 * start.vector));
    }
  }
  SECTION("few rows have larger blocks than many of the same length") {
    CHECK(Softmax({64, 8192}, 1).Start().block > Softmax({8192, 8192}, 1).Start().block / 2);
    CHECK(Softmax({16, 8192}, 1).Start().block >= Softmax({8192, 8192}, 1).Start().block);
  }
  SECTION("very long ones are cut where there are too few to fill the device") {
    CHECK(Softmax({1, 1 << 22}, 1).Start().split == 256);
    CHECK(Softmax({16, 1 << 18}, 1).Start().split == 16);
    CHECK(Softmax({4096, 1 << 14}, 1).Start().split == 1);
  }
}

TEST_CASE("Rows that lie side by side are shared until there are enough threads") {
  const RowMapping few = Softmax({1, 1024, 256}, 1).Start();
  CHECK(few.by_row == 1);
  CHECK(few.depth == 32);
  const RowMapping many = Softmax({64, 16, 16384}, 1).Start();
  CHECK(many.depth == 1);
  // Threads of a block that are on the same column read at least a transaction.
  CHECK(few.block / few.depth * few.vector * 4 >= 128);
}

TEST_CASE("A window over all of an image is a row, and others are not") {
  Group whole("aten::adaptive_avg_pool2d.default", {Pair("output_size", 1)}, {8, 64, 56, 56},
              {8, 64, 1, 1});
  CHECK(KindOf(whole.View()) != GroupKind::kWindow);
  CHECK(whole.Start().by_row == 0);
  Group pool("aten::max_pool2d.default", {Pair("kernel_size", 3), Pair("stride", 2)},
             {8, 64, 57, 57}, {8, 64, 28, 28});
  CHECK(KindOf(pool.View()) == GroupKind::kWindow);
  CHECK(pool.Start().vector == 1);
}

TEST_CASE("Whatever the shape, the knobs to start with are legal") {
  std::mt19937 random(20261127);  // NOLINT: the same shapes each time.
  const auto size = [&](double most) {
    return static_cast<int64_t>(std::exp2(std::uniform_real_distribution<>(0, most)(random)));
  };
  for (int i = 0; i < 200; ++i) {
    const std::vector<int64_t> shape = {size(6), size(14), size(12)};
    INFO(shape[0] << "x" << shape[1] << "x" << shape[2]);
    Softmax(shape, i % 3).Start();
  }
}

}  // namespace
}  // namespace mtmc::kernel

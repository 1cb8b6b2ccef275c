// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/knob_table.h"

#include <catch2/catch.hpp>
#include <random>

#include "kernel/graph/text.h"
#include "kernel/templates/template_registry.h"
#include "kernel/view/group_kind.h"

namespace mtmc::kernel {
namespace {

EmitTarget Gpu() {
  return {.dialect = Dialect::kCuda, .shared_bytes_per_block = int64_t{227} * 1024};
}

EmitTarget Cpu() {
  return {.dialect = Dialect::kOpenCl, .max_threads_per_block = 4096, .warp_size = 1};
}

// One operator over x[rows, columns], as a group that a line of schedule text describes.
class Group {
 public:
  Group(const std::string& op, std::vector<GraphArgument> arguments, TensorType x,
        TensorType result) {
    graph_.inputs = {{.name = "x", .type = std::move(x)}};
    arguments.insert(arguments.begin(), {"self", ValueArgument{"x"}});
    graph_.nodes = {{.name = "y",
                     .op = op,
                     .arguments = std::move(arguments),
                     .results = {"y"},
                     .result_types = {result}}};
    graph_.outputs = {{.name = "out", .value = "y", .type = result}};
    nest_ = *LowerToLoops(graph_);
    group_ = {.name = "y", .nodes = {"y"}};
  }

  absl::Status Check(const std::string& fields, const EmitTarget& target,
                     const KnobValues& tune = {}) {
    return CheckGroup(ViewOf(fields), target, tune);
  }

  // With every knob at its default.
  GroupView Complete(const std::string& fields, const EmitTarget& target) {
    group_ = WithAllKnobs(ViewOf(fields), target);
    return View();
  }

  // Without a template, as a graph's node is before any is chosen.
  GroupView View() const { return kernel::ViewOf(graph_, nest_, NestIndex(graph_, nest_), group_); }

 private:
  GroupView ViewOf(const std::string& fields) {
    group_ = ParseSchedule("group y nodes=y " + fields)->groups[0];
    return View();
  }

  Graph graph_;
  LoopNest nest_;
  KernelGroup group_;
};

TensorType Matrix(int64_t rows, int64_t columns, DataType type = DataType::kF32) {
  return {.data_type = type, .shape = {rows, columns}};
}

Group Relu(int64_t rows, int64_t columns) {
  return Group("aten::relu.default", {}, Matrix(rows, columns), Matrix(rows, columns));
}

Group Softmax(int64_t rows, int64_t columns) {
  return Group("aten::softmax.int", {{"dim", int64_t{1}}}, Matrix(rows, columns),
               Matrix(rows, columns));
}

Group CumulativeSum(int64_t rows, int64_t columns) {
  return Group("aten::cumsum.default", {{"dim", int64_t{1}}}, Matrix(rows, columns),
               Matrix(rows, columns));
}

Group Square(int64_t side, DataType type = DataType::kF32) {
  return Group("aten::matmul.default", {{"other", ValueArgument{"x"}}}, Matrix(side, side, type),
               Matrix(side, side, type));
}

struct Refusal {
  Group group;
  std::string fields;
  std::string message;
};

TEST_CASE("A knob that no kernel can have is refused with what is allowed", "[templates]") {
  std::vector<Refusal> refusals = {
      {Relu(8, 63), "template=pointwise vector=0",
       "\"vector\" is 0, must be a power of two from 1 to 16"},
      {Relu(8, 63), "template=pointwise vector=3", "must be a power of two from 1 to 16"},
      {Relu(3, 21), "template=pointwise vector=4", "must be a divisor of the group's 63 elements"},
      {Relu(8, 63), "template=pointwise block=2048", "must be at most 1024"},
      {Relu(8, 63), "template=pointwise block=9223372036854775807", "must be 1 to 65536"},
      {Relu(8, 63), "template=pointwise items=-1", "must be 1 to 16"},
      {Relu(8, 63), "template=pointwise tiled=1",
       "no knob of this template, which has turned, block, vector, items"},
      {Relu(8, 63), "template=pointwise precision=tf32", "which only library calls have"},
      {Relu(8, 63), "template=library block=1", "which has none"},
      {Relu(8, 63), "template=scan", "does not fit the template scan"},
      {Relu(8, 63), "template=tensor",
       "unknown template \"tensor\", there are pointwise, contraction, row, scan, split_product, "
       "library"},
      {Softmax(8, 60), "template=row vector=0", "must be 1 to 128"},
      {Softmax(8, 60), "template=row vector=8", "must be a divisor of 60 columns"},
      {Softmax(8, 60), "template=row by_row=2", "must be 0 or 1"},
      {Softmax(8, 60), "template=row block=16", "must be 32 to 1024"},
      {Softmax(8, 60), "template=row block=96", "must be a power of two"},
      {Softmax(8, 60), "template=row depth=0", "must be a power of two from 1 to 32"},
      {Softmax(8, 60), "template=row split=61", "must be at most the columns, 60"},
      {CumulativeSum(8, 60), "template=scan block=0", "must be 1 to 65536"},
      {CumulativeSum(8, 60), "template=scan vector=7", "must be a divisor of the 60 elements"},
      {Square(64), "template=contraction tiled=1 tm=0", "must be a power of two from 4 to 16"},
      {Square(64), "template=contraction tiled=1 bm=48", "must be a power of two from 16 to 256"},
      {Square(64), "template=contraction tiled=1 bm=256 bn=256", "need 4096 threads, at most 1024"},
      {Square(64), "template=contraction tiled=1 bm=256 bn=256 tm=16 tn=16",
       "256 sums, at most 128"},
      {Square(64, DataType::kF64), "template=contraction tiled=1 bm=128 bn=128 bk=32 tm=8 tn=8",
       "bytes of shared memory, at most 49152"}};
  for (Refusal& refusal : refusals) {
    const absl::Status status = refusal.group.Check(refusal.fields, Gpu());

    CAPTURE(refusal.fields, status.message());
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(status.message().find(refusal.message) != std::string_view::npos);
  }
}

TEST_CASE("What a group computes decides who prints it first", "[templates]") {
  struct Case {
    Group group;
    GroupKind kind;
    std::string_view printer;
  };

  std::vector<Case> cases = {{Relu(8, 60), GroupKind::kPointwise, "pointwise"},
                             {Softmax(8, 60), GroupKind::kNormalization, "row"},
                             {CumulativeSum(8, 60), GroupKind::kScan, "scan"},
                             {Square(64), GroupKind::kContraction, "contraction"}};
  for (Case& one : cases) {
    const GroupView view = one.group.View();
    const KernelTemplate* own = FindOwnTemplate(view, Gpu());

    CAPTURE(one.printer);
    CHECK(KindOf(view) == one.kind);
    REQUIRE(own != nullptr);
    CHECK(own->name == one.printer);
    CHECK_FALSE(own->is_call);
    // A call of one node is open to every kind.
    CHECK(FindCall(view, Gpu())->name == "library");
  }
}

TEST_CASE("Only parameters of a kernel are swept, in legal combinations", "[templates]") {
  Group relu = Relu(64, 64);
  Group square = Square(64);
  const std::string tiles = "template=contraction tiled=1 bm=64 bn=64";

  CHECK(relu.Check("template=pointwise", Gpu(), {{"block", {64, 128}}}).ok());
  CHECK(relu.Check("template=pointwise", Gpu(), {{"vector", {1, 2}}})
            .message()
            .find("cannot be swept, block, items can") != std::string_view::npos);
  CHECK_FALSE(relu.Check("template=pointwise", Gpu(), {{"block", {64, 0}}}).ok());
  CHECK(square.Check(tiles, Gpu(), {{"bm", {64, 256}}}).ok());
  CHECK_FALSE(square.Check(tiles, Gpu(), {{"bm", {64, 256}}, {"bn", {64, 256}}}).ok());
}

TEST_CASE("A schedule may not ask for more variants than are built", "[templates]") {
  Group relu = Relu(64, 64);
  KnobValues tune;
  for (int64_t i = 1; i <= 16; ++i) {
    tune["items"].push_back(i);
    tune["block"].push_back(32 * i);
  }

  CHECK(relu.Check("template=pointwise", Gpu(), tune).message().find("more than 64 variants") !=
        std::string_view::npos);
}

// From any set that the table leads to, whatever the shape.
TEST_CASE("Defaults, moves and sweeps are legal wherever a walk leads", "[templates]") {
  std::mt19937 random(7);
  const auto extent = [&random] { return static_cast<int64_t>(1 + random() % 300); };
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t rows = extent();
    const int64_t columns = trial % 3 == 0 ? 2048 * extent() : extent();
    std::vector<std::pair<std::string, Group>> groups;
    groups.emplace_back("pointwise", Relu(rows, columns));
    groups.emplace_back("row", Softmax(rows, columns));
    groups.emplace_back("scan", CumulativeSum(rows, columns));
    groups.emplace_back("contraction",
                        Square(rows, trial % 2 == 0 ? DataType::kF32 : DataType::kF64));
    for (auto& [name, group] : groups) {
      for (const EmitTarget& target : {Gpu(), Cpu()}) {
        std::string fields = "template=" + name;
        for (int step = 0; step < 4; ++step) {
          const GroupView view = group.Complete(fields, target);
          const KnobTable& table = TemplateOf(*view.group).knobs();
          CAPTURE(rows, columns, fields);
          KnobValues tune;
          for (const KnobSweep& sweep : table.Sweeps(view, target)) {
            tune[sweep.knob] = sweep.values;
          }
          REQUIRE(table.Check(view, target, tune).ok());
          const std::vector<KnobMove> moves = table.Moves(view, target);
          if (moves.empty()) break;
          const KnobMove& move = moves[random() % moves.size()];
          REQUIRE(move.knobs != view.group->knobs);
          fields = "template=" + name;
          for (const auto& [knob, value] : move.knobs) fields += Concat(" ", knob, "=", value);
        }
      }
    }
  }
}

}  // namespace
}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/engine.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "kernel/engine/testing/small_graph.h"
#include "kernel/graph/text.h"
#include "kernel/program/checker.h"
#include "kernel/program/interface.h"
#include "kernel/program/parser.h"

namespace mtmc::kernel {
namespace {

using testing::CudaOptions;
using testing::Has;
using testing::kSource;
using testing::MakeGraph;
using testing::TextsOf;
using testing::ValueOf;

std::string StartOf(const Graph& graph, const EngineOptions& options) {
  const absl::StatusOr<EngineProgram> made = CreateProgram(graph, options);
  REQUIRE(made.ok());
  const ParseResult parsed = ParseProgram(made->text);
  REQUIRE(parsed.program.has_value());
  const CheckLimits limits{.allowed_calls = {"aten::matmul"}};
  CHECK(CheckProgram(*parsed.program, FromGraph(graph), limits, {}).empty());
  return made->schedule;
}

TEST_CASE("A search starts with the vendor's products, joined maps and a captured plan",
          "[engine]") {
  CHECK(StartOf(MakeGraph(), CudaOptions(StartMapping::kEager)) ==
        "group matmul template=library nodes=matmul\n"
        "group mul_relu_add template=pointwise nodes=mul,relu,add vector=4\n"
        "capture\n");
}

TEST_CASE("A start of long kernels is not captured", "[engine]") {
  const Graph large = MakeGraph(/*rows=*/1 << 20);
  const auto start = CreateProgram(large, CudaOptions(StartMapping::kEager));
  REQUIRE(start.ok());

  CHECK(start->schedule.find("capture") == std::string::npos);
}

TEST_CASE("Without library calls a search starts with blocks of sums that take the maps along",
          "[engine]") {
  EngineOptions options = CudaOptions(StartMapping::kEager);
  options.allow_library = false;

  const std::string start = StartOf(MakeGraph(), options);

  CHECK(start.find("group matmul template=contraction nodes=matmul,mul,relu,add") == 0);
  CHECK(start.find("tiled=1") != std::string::npos);
  CHECK(start == StartOf(MakeGraph(), CudaOptions(StartMapping::kOwn)));
}

// relu(x @ w), large enough that products are the limit.
Graph MakeLargeProduct() {
  Graph graph = MakeGraph();
  const auto widen = [](TensorType& type) {
    for (int64_t& extent : type.shape) extent *= 64;
  };
  for (GraphInput& input : graph.inputs) widen(input.type);
  for (GraphNode& node : graph.nodes) widen(node.result_types[0]);
  for (GraphOutput& output : graph.outputs) widen(output.type);
  return graph;
}

TEST_CASE("A product that is worth it may be made of three on tensor cores", "[engine]") {
  const std::string text = "tensorize matmul with tf32x3 (lines 3-5)";
  const auto texts_of = [](const Graph& graph, const EngineOptions& options) {
    const absl::StatusOr<EngineProgram> start = CreateProgram(graph, options);
    REQUIRE(start.ok());
    return TextsOf(ListActions(graph, start->schedule, options).value());
  };
  const EngineOptions options = CudaOptions(StartMapping::kEager);
  EngineOptions without_calls = options;
  without_calls.allow_library = false;
  EngineOptions on_opencl = options;
  on_opencl.target.dialect = Dialect::kOpenCl;

  CHECK(Has(texts_of(MakeLargeProduct(), options), text));
  // Too small, no calls, no tensor cores.
  CHECK_FALSE(Has(texts_of(MakeGraph(), options), text));
  CHECK_FALSE(Has(texts_of(MakeLargeProduct(), without_calls), text));
  CHECK_FALSE(Has(texts_of(MakeLargeProduct(), on_opencl), text));

  const Graph graph = MakeLargeProduct();
  const auto start = CreateProgram(graph, options);
  const auto split = ApplyAction(graph, start->schedule, text, options);
  REQUIRE(split.ok());
  CHECK(split->schedule == "group matmul template=split_product nodes=matmul,mul,relu,add\n");
  const ParseResult parsed = ParseProgram(split->text);
  REQUIRE(parsed.program.has_value());
  const CheckLimits limits{.allowed_calls = {"aten::bmm"}};
  CHECK(CheckProgram(*parsed.program, FromGraph(graph), limits, {}).empty());
  CHECK(split->text.find("precision=tf32") != std::string::npos);

  // Of 2,048 elements.
  const auto exact = ApplyAction(graph, start->schedule,
                                 "tensorize matmul with tf32x3 in short sums (lines 3-5)", options);
  REQUIRE(exact.ok());
  CHECK(exact->schedule ==
        "group matmul template=split_product nodes=matmul,mul,relu,add sum=256\n");
  CHECK(exact->text.find("buffer matmul_sums f32[8,4096,3072]") != std::string::npos);
}

TEST_CASE("A plain start joins and captures nothing", "[engine]") {
  const std::string start = StartOf(MakeGraph(), CudaOptions(StartMapping::kPlain));

  CHECK(std::count(start.begin(), start.end(), '\n') == 4);
  CHECK(start.find("group matmul template=library") == 0);
}

// x with 1 row of a million elements, summed.
Graph MakeLongSum() {
  const TensorType x{.shape = {1, 1 << 20}};
  Graph graph{.source = kSource};
  graph.inputs = {{.name = "x", .type = x}};
  graph.nodes = {{"sum",
                  "aten::sum.dim_IntList",
                  {ValueOf("self", "x"),
                   {"dim", std::vector<GraphArgument>{{"", int64_t{1}}}},
                   {"keepdim", false}},
                  {"sum"},
                  {TensorType{.shape = {1}}},
                  3,
                  ""}};
  graph.outputs = {{.name = "y", .value = "sum", .type = TensorType{.shape = {1}}}};
  return graph;
}

TEST_CASE("A search starts with long sums in pieces", "[engine]") {
  EngineOptions options = CudaOptions(StartMapping::kEager);
  options.target.compute_units = 100;

  CHECK(StartOf(MakeLongSum(), options).find(" split=") != std::string::npos);
}

TEST_CASE("A start that failed has the other starts to go on with", "[engine]") {
  const Graph graph = MakeGraph();
  const EngineOptions options = CudaOptions(StartMapping::kEager);
  const std::string start = StartOf(graph, options);

  const auto restarts = ListRestarts(graph, start, options);

  REQUIRE(restarts.ok());
  REQUIRE(restarts->size() == 4);
  // What a vendor may round first, then the vendor.
  CHECK(restarts->at(0).arguments.at("mapping") == "ieee");
  CHECK(restarts->at(1).arguments.at("mapping") == "own");
  CHECK(restarts->back().arguments.at("mapping") == "naive");
  for (const EngineAction& restart : *restarts) {
    CAPTURE(restart.text);
    const auto next = ApplyAction(graph, start, restart.text, options);
    REQUIRE(next.ok());
    CHECK(next->schedule != start);
  }
}

TEST_CASE("A long product is the sum of stretches, in each of its forms", "[engine]") {
  const auto text_of = [](int64_t terms, Dialect dialect, const std::string& knobs) {
    Graph graph = MakeGraph();
    graph.inputs[0].type.shape[1] = graph.inputs[1].type.shape[0] = terms;
    EngineOptions options = CudaOptions();
    options.target.dialect = dialect;
    const absl::StatusOr<EngineProgram> made = PrintSchedule(
        graph, Concat("group matmul template=contraction nodes=matmul,mul,relu,add", knobs, "\n"),
        options);
    REQUIRE(made.ok());
    return made->text;
  };
  const std::string stretch = "stretch";
  for (const Dialect dialect : {Dialect::kCuda, Dialect::kOpenCl}) {
    for (const char* knobs : {"", " tiled=1"}) {
      INFO(knobs);
      CHECK(text_of(16384, dialect, knobs).find(stretch) != std::string::npos);
      CHECK(text_of(4096, dialect, knobs).find(stretch) == std::string::npos);
    }
  }
}

TEST_CASE("A library call can become a kernel of our own with what is around it", "[engine]") {
  const EngineOptions options = CudaOptions(StartMapping::kEager);
  const std::string start = StartOf(MakeGraph(), options);

  const auto fused =
      ApplyAction(MakeGraph(), start,
                  "fuse matmul as a kernel of our own with what is around it (lines 3-5)", options);

  REQUIRE(fused.ok());
  CHECK(fused->schedule.find("group matmul template=contraction nodes=matmul,mul,relu,add") == 0);
}

// y = x moved by `op` times x, for x with four rows of four.
Graph MakeMovedProduct(const std::string& op, std::vector<GraphArgument> arguments) {
  const TensorType type{.shape = {4, 4}};
  arguments.insert(arguments.begin(), ValueOf("self", "x"));
  Graph graph{.source = kSource};
  graph.inputs = {{.name = "x", .type = type}};
  graph.nodes = {{"moved", op, std::move(arguments), {"moved"}, {type}, 3, ""},
                 {"matmul",
                  "aten::matmul.default",
                  {ValueOf("self", "moved"), ValueOf("other", "x")},
                  {"matmul"},
                  {type},
                  4,
                  ""}};
  graph.outputs = {{.name = "y", .value = "matmul", .type = type}};
  return graph;
}

TEST_CASE("A library call reads what is moved where it lies, as far as strides can say",
          "[engine]") {
  const std::vector<GraphArgument> first = {{"", int64_t{0}}};
  const Graph turned = MakeMovedProduct("aten::t.default", {});
  const Graph reversed = MakeMovedProduct("aten::flip.default", {{"dims", first}});
  const EngineOptions options = CudaOptions(StartMapping::kEager);

  const std::string call = CreateProgram(turned, options).value().text;
  const std::string copy = CreateProgram(reversed, options).value().text;

  CHECK(call.find("call aten::matmul.default(as_strided(x, [4, 4], [1, 4], 0), x) -> y") !=
        std::string::npos);
  CHECK(call.find("//@ buffer") == std::string::npos);
  CHECK(copy.find("call aten::matmul.default(moved, x) -> y") != std::string::npos);
}

TEST_CASE("Small maps of one shape that have nothing to do with each other start as one kernel",
          "[engine]") {
  Graph graph{.source = kSource};
  for (int i = 0; i < 40; ++i) {
    const std::string number = std::to_string(i);
    const TensorType type{.shape = {i < 39 ? 8 : 9}};
    graph.inputs.push_back({.name = "x" + number, .type = type});
    graph.nodes.push_back({"neg" + number,
                           "aten::neg.default",
                           {ValueOf("self", "x" + number)},
                           {"neg" + number},
                           {type},
                           3,
                           ""});
    graph.outputs.push_back({.name = "y" + number, .value = "neg" + number, .type = type});
  }

  const std::string start = StartOf(graph, CudaOptions(StartMapping::kEager));

  CHECK(start.find("group neg0_to_neg31 ") == 0);
  CHECK(start.find("group neg32_to_neg38 ") != std::string::npos);
  CHECK(start.find("group neg39 ") != std::string::npos);
}

TEST_CASE("A naive start launches one kernel per graph node", "[engine]") {
  const absl::StatusOr<EngineProgram> made = CreateProgram(MakeGraph(), CudaOptions());

  REQUIRE(made.ok());
  const ParseResult parsed = ParseProgram(made->text);
  REQUIRE(parsed.program.has_value());
  CHECK(parsed.program->steps.size() == 4);
  CHECK(CheckProgram(*parsed.program, FromGraph(MakeGraph()), {}, {}).empty());
}

TEST_CASE("A kernel quotes the user's lines that it computes", "[engine]") {
  const absl::StatusOr<EngineProgram> made = CreateProgram(MakeGraph(), CudaOptions());

  REQUIRE(made.ok());
  CHECK(made->text.find("// h = torch.relu(h * 2.0)  (line 4)\n") != std::string::npos);
}

TEST_CASE("ListActions offers a whole pointwise chain in one step", "[engine]") {
  const absl::StatusOr<EngineProgram> made = CreateProgram(MakeGraph(), CudaOptions());
  REQUIRE(made.ok());

  const auto actions = ListActions(MakeGraph(), made->schedule, CudaOptions());

  REQUIRE(actions.ok());
  const std::vector<std::string> texts = TextsOf(*actions);
  CHECK(Has(texts, "fuse mul, relu and add (lines 4-5)"));
  CHECK(Has(texts, "fuse mul into matmul (lines 3-4)"));
  CHECK(Has(texts, "library matmul as aten::matmul (line 3)"));
  CHECK(texts.back() == "stop");
}

TEST_CASE("Action texts of one program are unique", "[engine]") {
  const absl::StatusOr<EngineProgram> made = CreateProgram(MakeGraph(), CudaOptions());
  REQUIRE(made.ok());
  const auto actions = ListActions(MakeGraph(), made->schedule, CudaOptions());
  REQUIRE(actions.ok());

  std::vector<std::string> texts = TextsOf(*actions);
  std::sort(texts.begin(), texts.end());

  CHECK(std::adjacent_find(texts.begin(), texts.end()) == texts.end());
}

TEST_CASE("Fusing everything leaves one kernel", "[engine]") {
  const absl::StatusOr<EngineProgram> made = CreateProgram(MakeGraph(), CudaOptions());
  REQUIRE(made.ok());

  const absl::StatusOr<EngineProgram> fused = ApplyAction(
      MakeGraph(), made->schedule,
      "fuse everything around matmul: matmul, mul, relu and add (lines 3-5)", CudaOptions());

  REQUIRE(fused.ok());
  CHECK(ParseProgram(fused->text).program->steps.size() == 1);
  CHECK(fused->schedule == "group matmul template=contraction nodes=matmul,mul,relu,add\n");
}

TEST_CASE("A library call splits off what was fused to it", "[engine]") {
  const std::string schedule = "group matmul template=contraction nodes=matmul,mul,relu,add\n";

  const absl::StatusOr<EngineProgram> split =
      ApplyAction(MakeGraph(), schedule,
                  "library matmul as aten::matmul and the rest apart (lines 3-5)", CudaOptions());

  REQUIRE(split.ok());
  CHECK(split->schedule ==
        "group matmul template=library nodes=matmul\n"
        "group matmul_after template=pointwise nodes=mul,relu,add\n");
}

TEST_CASE("Tuning declares the swept knobs as parameters", "[engine]") {
  const std::string schedule = "group matmul template=contraction nodes=matmul,mul,relu,add\n";

  const absl::StatusOr<EngineProgram> tuned =
      ApplyAction(MakeGraph(), schedule, "tune matmul over block (lines 3-5)", CudaOptions());

  REQUIRE(tuned.ok());
  const ParseResult parsed = ParseProgram(tuned->text);
  REQUIRE(parsed.program.has_value());
  REQUIRE(parsed.program->tune.size() == 1);
  CHECK(parsed.program->tune[0].name == "MATMUL_BLOCK");
}

TEST_CASE("Actions on groups of their own go together", "[engine]") {
  const Graph graph = MakeGraph();
  const auto both = ApplyTogether(
      graph, StartOf(graph, CudaOptions()),
      {"library matmul as aten::matmul (line 3)", "fuse relu into add (lines 4-5)"}, CudaOptions());
  REQUIRE(both.ok());
  CHECK(both->schedule ==
        "group matmul template=library nodes=matmul\n"
        "group mul template=pointwise nodes=mul\n"
        "group relu_add template=pointwise nodes=relu,add\n");
}

TEST_CASE("Actions on one group do not go together", "[engine]") {
  const Graph graph = MakeGraph();
  const auto both = ApplyTogether(graph, StartOf(graph, CudaOptions()),
                                  {"fuse mul into relu (line 4)", "fuse relu into add (lines 4-5)"},
                                  CudaOptions());
  CHECK(absl::IsFailedPrecondition(both.status()));
  CHECK(both.status().message() == "two steps change the group \"relu\"");
}

TEST_CASE("ApplyTogether refuses an action that is not legal", "[engine]") {
  const Graph graph = MakeGraph();
  CHECK(absl::IsNotFound(
      ApplyTogether(graph, StartOf(graph, CudaOptions()), {"fuse all"}, CudaOptions()).status()));
}

TEST_CASE("A schedule is printed whatever order its groups stand in", "[engine]") {
  const Graph graph = MakeGraph();
  const auto printed = PrintSchedule(graph,
                                     "group relu_add template=pointwise nodes=relu,add\n"
                                     "group matmul template=library nodes=matmul\n"
                                     "group mul template=pointwise nodes=mul\n",
                                     CudaOptions());
  REQUIRE(printed.ok());
  CHECK(printed->schedule ==
        "group matmul template=library nodes=matmul\n"
        "group mul template=pointwise nodes=mul\n"
        "group relu_add template=pointwise nodes=relu,add\n");
}

TEST_CASE("A schedule of another graph is not printed", "[engine]") {
  const Graph graph = MakeGraph();
  for (const char* schedule : {"group gelu template=pointwise nodes=gelu\n",
                               "group mul template=pointwise nodes=mul\n", "group\n"}) {
    INFO(schedule);
    CHECK(absl::IsInvalidArgument(PrintSchedule(graph, schedule, CudaOptions()).status()));
  }
}

TEST_CASE("ApplyAction refuses an action that is not legal", "[engine]") {
  const absl::StatusOr<EngineProgram> made = CreateProgram(MakeGraph(), CudaOptions());
  REQUIRE(made.ok());

  const auto applied = ApplyAction(MakeGraph(), made->schedule, "fuse all", CudaOptions());

  CHECK(applied.status().code() == absl::StatusCode::kNotFound);
}

TEST_CASE("ListActions refuses a schedule of another graph", "[engine]") {
  const std::string schedule =
      GENERATE(as<std::string>{}, "group a template=pointwise nodes=conv\n",
               "group matmul template=pointwise nodes=matmul\n",
               "group add template=pointwise nodes=add\n"
               "group relu template=pointwise nodes=relu\n");
  CAPTURE(schedule);

  const auto actions = ListActions(MakeGraph(), schedule, CudaOptions());

  CHECK(actions.status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("ListActions refuses knobs that no kernel can have, and says what can be", "[engine]") {
  const std::string rest =
      "group mul template=pointwise nodes=mul\ngroup relu template=pointwise nodes=relu\n"
      "group add template=pointwise nodes=add\n";
  const std::string line = GENERATE(as<std::string>{}, "tiled=1 tm=0", "tiled=1 bm=48", "block=0",
                                    "vector=4", "block=4611686018427387904");
  CAPTURE(line);

  const auto actions = ListActions(
      MakeGraph(), "group matmul template=contraction nodes=matmul " + line + "\n" + rest,
      CudaOptions());

  CHECK(actions.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(actions.status().message().find("in group \"matmul\"") != std::string_view::npos);
}

TEST_CASE("ListActions refuses sweeps that the kernel's text does not have", "[engine]") {
  const std::string schedule =
      "group matmul template=contraction nodes=matmul,mul,relu,add\ntune matmul.tiled=0,1\n";

  const auto actions = ListActions(MakeGraph(), schedule, CudaOptions());

  CHECK(actions.status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/class_actions.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "kernel/action/own_kernel.h"
#include "kernel/action/start_schedule.h"
#include "kernel/action/task.h"

namespace mtmc::kernel {
namespace {

GraphArgument ValueOf(const std::string& name, const std::string& value) {
  return {.name = name, .value = ValueArgument{value}};
}

// A chain of `relu(x @ w)`, one per width in `widths`: the product of layer i has
// that many columns. Numbers stand apart, so that names say nothing.
Graph MakeChain(const std::vector<int64_t>& widths) {
  Graph graph;
  int64_t columns = widths[0];
  graph.inputs = {{.name = "x", .type = {.shape = {64, columns}}}};
  std::string last = "x";
  for (size_t i = 0; i < widths.size(); ++i) {
    const std::string number = std::to_string(7 * i + 3);
    const std::string weight = "w" + number;
    const std::string product = "mm" + number;
    const std::string act = "act" + number;
    const TensorType type{.shape = {64, widths[i]}};
    graph.inputs.push_back({.name = weight, .type = {.shape = {columns, widths[i]}}});
    graph.nodes.push_back({product,
                           "aten::matmul.default",
                           {ValueOf("self", last), ValueOf("other", weight)},
                           {product},
                           {type},
                           static_cast<int>(2 * i + 1),
                           ""});
    graph.nodes.push_back({act,
                           "aten::relu.default",
                           {ValueOf("self", product)},
                           {act},
                           {type},
                           static_cast<int>(2 * i + 2),
                           ""});
    last = act;
    columns = widths[i];
  }
  graph.outputs = {{.name = "y", .value = last, .type = {.shape = {64, columns}}}};
  return graph;
}

// A schedule with its context and its actions; immovable, for they refer to each other.
struct Setting {
  explicit Setting(Graph made, StartMapping mapping = StartMapping::kPlain)
      : graph(std::move(made)),
        nest(LowerToLoops(graph).value()),
        index(graph, nest),
        context{.graph = graph, .nest = nest, .index = index, .target = {}},
        schedule(MakeStartSchedule(context, mapping).value()) {
    single = EnumerateActions(context, schedule, {});
    for (LegalAction& own : EnumerateOwnKernels(context, schedule)) single.push_back(own);
    classes = EnumerateClassActions(context, schedule, single);
  }

  const LegalAction* Find(const std::string& text) const {
    const auto found = std::find_if(classes.begin(), classes.end(), [&](const LegalAction& legal) {
      return legal.action.text == text;
    });
    return found == classes.end() ? nullptr : &*found;
  }

  const Graph graph;
  const LoopNest nest;
  const NestIndex index;
  const ScheduleContext context;
  const Schedule schedule;
  std::vector<LegalAction> single;
  std::vector<LegalAction> classes;
};

int CountOf(const Schedule& schedule, std::string_view printer) {
  return static_cast<int>(
      std::count_if(schedule.groups.begin(), schedule.groups.end(),
                    [&](const KernelGroup& group) { return group.template_name == printer; }));
}

TEST_CASE("A task has no names in it", "[action]") {
  const Setting chain(MakeChain({48, 48, 48}));
  const std::string first = TaskOf(chain.context, {"mm3"});
  CHECK(first == TaskOf(chain.context, {"mm10"}));
  CHECK(TaskOf(chain.context, {"mm3", "act3"}) == TaskOf(chain.context, {"mm10", "act10"}));
}

TEST_CASE("A task tells shapes, operators and outside readers apart", "[action]") {
  const Setting chain(MakeChain({48, 48, 32}));
  CHECK(TaskOf(chain.context, {"mm3"}) != TaskOf(chain.context, {"mm17"}));
  CHECK(TaskOf(chain.context, {"mm3"}) != TaskOf(chain.context, {"act3"}));

  Graph graph = MakeChain({48, 48});
  graph.outputs.push_back({.name = "z", .value = "mm3", .type = {.shape = {64, 48}}});
  const Setting with_output(std::move(graph));
  CHECK(TaskOf(with_output.context, {"mm3", "act3"}) !=
        TaskOf(with_output.context, {"mm10", "act10"}));
}

TEST_CASE("One action turns all equal library calls into kernels of our own", "[action]") {
  const Setting chain(MakeChain({48, 48, 48, 32, 32}));
  REQUIRE(CountOf(chain.schedule, "library") == 5);

  const LegalAction* own =
      chain.Find("tile mm3 as a kernel of our own and its 2 equals (lines 1-5)");
  REQUIRE(own != nullptr);
  CHECK(own->action.kernels == std::vector<std::string>{"mm3", "mm10", "mm17"});
  CHECK(own->action.arguments.at("equals") == "3");
  const Schedule changed = own->apply();
  CHECK(CountOf(changed, "contraction") == 3);
  CHECK(CountOf(changed, "library") == 2);
  CHECK(CheckSchedule(chain.context, changed).ok());
}

TEST_CASE("One action joins all equal pairs", "[action]") {
  const Setting chain(MakeChain({48, 48, 48}), StartMapping::kNaive);
  const LegalAction* fuse = chain.Find("fuse act3 into mm3 and its 2 equals (lines 1-6)");
  REQUIRE(fuse != nullptr);
  const Schedule changed = fuse->apply();
  CHECK(changed.groups.size() == 3);
  CHECK(CheckSchedule(chain.context, changed).ok());
}

// What the search relies on when it takes several steps in one trial.
TEST_CASE("An action changes no kernel but those of its region, or says so", "[action]") {
  const Setting chain(MakeChain({48, 48, 48, 20, 20}), StartMapping::kEager);
  std::vector<LegalAction> all = chain.single;
  all.insert(all.end(), chain.classes.begin(), chain.classes.end());
  int plans = 0;
  for (const LegalAction& legal : all) {
    const EngineAction& action = legal.action;
    const auto scope = action.arguments.find("scope");
    plans += scope != action.arguments.end() ? 1 : 0;
    if (scope != action.arguments.end() || action.type == "capture") continue;
    const Schedule changed = legal.apply();
    for (const KernelGroup& group : chain.schedule.groups) {
      INFO(action.text << " and " << group.name);
      const bool is_inside = std::count(action.kernels.begin(), action.kernels.end(), group.name);
      const bool stands = std::count(changed.groups.begin(), changed.groups.end(), group);
      CHECK((is_inside || stands));
    }
  }
  CHECK(plans == 1);
}

TEST_CASE("Groups without an equal have no class action", "[action]") {
  CHECK(Setting(MakeChain({48, 32, 16})).classes.empty());
}

TEST_CASE("Groups that wear different variants are not changed together", "[action]") {
  Setting chain(MakeChain({48, 48, 48}));
  Schedule mixed = chain.schedule;
  for (KernelGroup& group : mixed.groups) {
    if (group.name == "mm10") group.template_name = "contraction";
  }
  const std::vector<LegalAction> classes =
      EnumerateClassActions(chain.context, mixed, EnumerateActions(chain.context, mixed, {}));
  for (const LegalAction& legal : classes) {
    INFO(legal.action.text);
    CHECK(std::count(legal.action.kernels.begin(), legal.action.kernels.end(), "mm10") == 0);
  }
}

// Unions of which each is legal: (a, c) and (b, d), where a feeds d and b feeds c.
TEST_CASE("Unions that would wait for each other are no class", "[action]") {
  const TensorType type{.shape = {64, 48}};
  Graph graph;
  graph.inputs = {{.name = "x", .type = type}, {.name = "z", .type = type}};
  const auto relu = [&](const std::string& name, const std::string& from) {
    return GraphNode{name, "aten::relu.default", {ValueOf("self", from)}, {name}, {type}, 1, ""};
  };
  const auto add = [&](const std::string& name, const std::string& a, const std::string& b) {
    return GraphNode{name,
                     "aten::add.Tensor",
                     {ValueOf("self", a), ValueOf("other", b), {"alpha", int64_t{1}}},
                     {name},
                     {type},
                     2,
                     ""};
  };
  graph.nodes = {relu("a", "x"), relu("b", "z"), add("c", "a", "b"), add("d", "b", "a")};
  graph.outputs = {{.name = "y", .value = "c", .type = type},
                   {.name = "v", .value = "d", .type = type}};
  const Setting crossed(std::move(graph), StartMapping::kNaive);

  for (const LegalAction& legal : crossed.classes) {
    INFO(legal.action.text);
    CHECK(CheckSchedule(crossed.context, legal.apply()).ok());
  }
}

TEST_CASE("Class actions have texts of their own and leave schedules that check", "[action]") {
  for (const StartMapping mapping :
       {StartMapping::kEager, StartMapping::kOwn, StartMapping::kPlain, StartMapping::kNaive}) {
    const Setting chain(MakeChain({48, 48, 48, 20, 20, 20, 20}), mapping);
    CHECK_FALSE(chain.classes.empty());
    std::set<std::string> texts;
    for (const LegalAction& legal : chain.classes) {
      INFO(legal.action.text);
      CHECK(texts.insert(legal.action.text).second);
      const Schedule changed = legal.apply();
      CHECK_FALSE(changed == chain.schedule);
      CHECK(CheckSchedule(chain.context, changed).ok());
      CHECK(ParseSchedule(ToText(changed)).ok());
    }
  }
}

}  // namespace
}  // namespace mtmc::kernel

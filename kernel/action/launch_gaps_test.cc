// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/launch_gaps.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernel/action/action_space.h"
#include "kernel/action/start_schedule.h"

namespace mtmc::kernel {
namespace {

// relu of one tensor after another, of so many elements each, on a GPU.
struct Plan {
  explicit Plan(const std::vector<int64_t>& elements)
      : graph(MakeGraph(elements)),
        nest(LowerToLoops(graph).value()),
        index(graph, nest),
        context{
            .graph = graph, .nest = nest, .index = index, .target = {.dialect = Dialect::kCuda}},
        schedule(MakeStartSchedule(context, StartMapping::kPlain).value()) {}

  static Graph MakeGraph(const std::vector<int64_t>& elements) {
    Graph graph;
    for (size_t i = 0; i < elements.size(); ++i) {
      const std::string input = "x" + std::to_string(i);
      const std::string node = "relu" + std::to_string(i);
      const TensorType type{.shape = {elements[i]}};
      graph.inputs.push_back({.name = input, .type = type});
      graph.nodes.push_back({node,
                             "aten::relu.default",
                             {{.name = "self", .value = ValueArgument{input}}},
                             {node},
                             {type},
                             static_cast<int>(i + 1),
                             ""});
      graph.outputs.push_back({.name = "y" + std::to_string(i), .value = node, .type = type});
    }
    return graph;
  }

  bool OffersCapture() const {
    const std::vector<LegalAction> actions = EnumerateActions(context, schedule, {});
    return std::any_of(actions.begin(), actions.end(),
                       [](const LegalAction& legal) { return legal.action.type == "capture"; });
  }

  const Graph graph;
  const LoopNest nest;
  const NestIndex index;
  const ScheduleContext context;
  const Schedule schedule;
};

// Bytes are read and written, four for each element.
constexpr int64_t kSmall = 1 << 10;
constexpr int64_t kLarge = 1 << 26;

TEST_CASE("A plan of small kernels waits for the host, one of large kernels does not", "[action]") {
  const Plan small({kSmall, kSmall});
  CHECK(LaunchesShow(small.context, small.schedule));
  CHECK(SomeLaunchShows(small.context, small.schedule));
  const Plan large({kLarge, kLarge});
  CHECK_FALSE(LaunchesShow(large.context, large.schedule));
  CHECK_FALSE(SomeLaunchShows(large.context, large.schedule));
}

TEST_CASE("A small kernel beside large ones waits for the host", "[action]") {
  const Plan plan({kLarge, kSmall, kLarge});
  CHECK_FALSE(LaunchesShow(plan.context, plan.schedule));
  CHECK(SomeLaunchShows(plan.context, plan.schedule));
}

TEST_CASE("A plan is captured only where the host shows", "[action]") {
  CHECK(Plan({kSmall}).OffersCapture());
  CHECK(Plan({kLarge, kSmall}).OffersCapture());
  CHECK_FALSE(Plan({kLarge}).OffersCapture());
}

}  // namespace
}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "policy/service/prompt.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace mtmc::policy {
namespace {

std::vector<Action> Actions(int count) {
  std::vector<Action> actions;
  for (int i = 0; i < count; ++i) {
    actions.push_back({.type = ActionType::kFuse,
                       .kernels = {},
                       .nodes = {},
                       .arguments = {},
                       .text = "fuse op_" + std::to_string(i) + " into gemm_0"});
  }
  return actions;
}

SearchState State() {
  SearchState state;
  state.signature = {"input x: f32[8,16]", "output y: f32[8,16] = gelu"};
  state.ops = {{.name = "gelu",
                .op = "aten::gelu.default",
                .operands = {"x"},
                .results = {"gelu"},
                .result_bytes = 512,
                .listing = "gelu: f32[8,16] = aten::gelu.default(x, 'none')  # line 21"}};
  state.program = "//@ mtmc 1 cuda\n//@ launch gelu grid=1 block=128 args=(x, y)\n";
  state.device = {.product = "NVIDIA H200",
                  .is_cuda = true,
                  .has_library_calls = true,
                  .compute_units = 132,
                  .bytes_per_second = 4.3e12,
                  .fp32_flops_per_second = 5.1e13,
                  .tf32_flops_per_second = 3.67e14};
  state.evaluation.median_seconds = 0.000123;
  state.evaluation.speedup = 1.25;
  state.evaluation.limit = "memory";
  state.evaluation.speed_of_light_ratio = 0.43;
  state.evaluation.kernels = {{.kernel = "gelu", .seconds = 1e-4, .share_ratio = 0.81}};
  state.evaluation.metrics = {{"dram_throughput_ratio", 0.43}, {"stall_wait_ratio", 0.2}};
  state.history = {{.action = "tile gelu", .outcome = "faster", .speedup = 1.25}};
  state.remaining_steps = 5;
  return state;
}

TEST_CASE("MakePrompt writes the documented form", "[policy]") {
  CHECK(MakePrompt(State(), Actions(1)) ==
        "Choose the next optimization of this program.\n"
        "Device: NVIDIA H200, 132 units, 4300 GB/s, 51 TFLOP/s fp32, 367 TFLOP/s tf32, library "
        "calls\n"
        "Precision: kernelbench\n"
        "Reference:\n"
        "input x: f32[8,16]\n"
        "gelu: f32[8,16] = aten::gelu.default(x, 'none')  # line 21\n"
        "output y: f32[8,16] = gelu\n"
        "Program:\n"
        "//@ mtmc 1 cuda\n"
        "//@ launch gelu grid=1 block=128 args=(x, y)\n"
        "Time: 0.123 ms, speedup 1.25\n"
        "Limit: memory, 43% of the speed of light\n"
        "Kernels: gelu 81%\n"
        "Counters: dram 43 %, stalls: wait 20 %\n"
        "Steps so far:\n"
        "1. tile gelu: faster, speedup 1.25\n"
        "Steps left: 5\n"
        "Legal actions:\n"
        "- fuse op_0 into gemm_0\n"
        "Next action:");
}

TEST_CASE("MakePrompt does not depend on the order of the actions", "[policy]") {
  std::vector<Action> actions = Actions(7);
  const std::string forward = MakePrompt(State(), actions);

  std::reverse(actions.begin(), actions.end());

  CHECK(MakePrompt(State(), actions) == forward);
}

TEST_CASE("MakePrompt stays within its length whatever it is given", "[policy]") {
  SearchState state = State();
  for (int i = 0; i < 12; ++i) state.program += state.program;
  for (int i = 0; i < 500; ++i) state.ops.push_back(state.ops.front());
  for (int i = 0; i < 200; ++i) state.history.push_back(state.history.front());
  state.device.product = std::string(5000, 'd');
  state.evaluation.repair = ActionType::kFixBuild;
  state.evaluation.failure = std::string(70000, 'f');
  state.evaluation.limit = std::string(5000, 'l');
  state.evaluation.kernels.assign(50, {.kernel = std::string(900, 'k'), .share_ratio = 0.5});
  for (const profile::Metric& metric : profile::MetricTable()) {
    state.evaluation.metrics[std::string(metric.name)] = 0.987;
  }
  const auto bytes = static_cast<size_t>(GENERATE(1500, 3000, 12000));

  const std::string prompt = MakePrompt(state, Actions(400), bytes);

  CHECK(prompt.size() <= bytes);
  CHECK(prompt.ends_with("Next action:"));
}

TEST_CASE("MakePrompt cuts long lines between characters", "[policy]") {
  SearchState state = State();
  state.program = "// ";
  for (int i = 0; i < 400; ++i) state.program += "é";

  const std::string prompt = MakePrompt(state, Actions(1));

  const size_t line = prompt.find("// é");
  REQUIRE(line != prompt.npos);
  CHECK((prompt.find('\n', line) - line - 3) % 2 == 0);
}

}  // namespace
}  // namespace mtmc::policy

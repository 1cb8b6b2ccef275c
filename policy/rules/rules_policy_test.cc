// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/rules_policy.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "policy/rules/facts.h"
#include "policy/rules/op_kind.h"
#include "policy/rules/rule_table.h"

namespace mtmc::policy {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

GraphOp Op(std::string name, std::string op, std::vector<std::string> operands,
           int64_t bytes = 64 * kMegabyte) {
  return {.name = name,
          .op = "aten::" + op + ".default",
          .operands = std::move(operands),
          .results = {name},
          .result_bytes = bytes,
          .listing = ""};
}

Action Act(ActionType type, std::string text, std::vector<std::string> kernels = {},
           std::vector<std::string> nodes = {}, std::map<std::string, std::string> arguments = {}) {
  return {.type = type,
          .kernels = std::move(kernels),
          .nodes = std::move(nodes),
          .arguments = std::move(arguments),
          .text = std::move(text)};
}

// linear -> gelu -> mul -> softmax on a GPU with library calls, all naive.
SearchState LinearChain() {
  SearchState state;
  state.ops = {Op("linear", "linear", {"x", "w"}), Op("gelu", "gelu", {"linear"}),
               Op("mul", "mul.Tensor", {"gelu"}), Op("softmax", "softmax.int", {"mul"})};
  state.program =
      "//@ mtmc 1 cuda\n//@ buffer linear f32[1]\n//@ buffer gelu f32[1]\n//@ buffer mul f32[1]\n"
      "//@ launch linear grid=1 block=256 args=(x, w, linear)\n"
      "//@ launch gelu grid=1 block=256 args=(linear, gelu)\n"
      "//@ launch mul grid=1 block=256 args=(gelu, mul)\n"
      "//@ launch softmax grid=1 block=256 args=(mul, y)\n";
  state.device = {.product = "NVIDIA H200",
                  .is_cuda = true,
                  .has_library_calls = true,
                  .compute_units = 132,
                  .bytes_per_second = 4e12,
                  .fp32_flops_per_second = 5e13,
                  .tf32_flops_per_second = 3.6e14};
  state.minimum_bytes = 192 * kMegabyte;
  state.contraction_flops = 500'000'000'000;
  state.evaluation.median_seconds = 0.2;
  state.remaining_steps = 8;
  return state;
}

std::vector<Action> ChainActions() {
  return {
      Act(ActionType::kStop, "stop"),
      Act(ActionType::kFuse, "fuse gelu into linear", {"linear", "gelu"}, {"linear", "gelu"}),
      Act(ActionType::kFuse, "fuse mul into gelu", {"gelu", "mul"}, {"gelu", "mul"}),
      Act(ActionType::kLibrary, "library linear", {"linear"}, {"linear"}, {{"precision", "exact"}}),
      Act(ActionType::kLibrary, "library linear tf32", {"linear"}, {"linear"},
          {{"precision", "tf32"}}),
      Act(ActionType::kVectorize, "vectorize gelu", {"gelu"}, {"gelu"}),
      Act(ActionType::kCapture, "capture"),
      Act(ActionType::kTune, "tune softmax", {"softmax"}, {"softmax"})};
}

std::string BestOf(const SearchState& state, const std::vector<Action>& actions) {
  const Distribution distribution = RulesPolicy::Score(state, actions, 1.0);
  const auto best = std::max_element(distribution.scores.begin(), distribution.scores.end());
  return actions[static_cast<size_t>(best - distribution.scores.begin())].text;
}

double ScoreOf(const SearchState& state, const Action& action) {
  return RulesPolicy::Score(state, std::vector<Action>{action}, 1.0).scores[0];
}

TEST_CASE("ClassifyOp knows the kinds that decide", "[policy]") {
  auto [op, kind] = GENERATE(table<std::string, OpKind>({
      {"aten::conv2d.default", OpKind::kContraction},
      {"aten::linear.default", OpKind::kContraction},
      {"aten::layer_norm.default", OpKind::kReduction},
      {"aten::max.dim", OpKind::kReduction},
      {"aten::maximum.default", OpKind::kPointwise},
      {"aten::max_pool2d.default", OpKind::kWindow},
      {"aten::view.default", OpKind::kMovement},
      {"aten::gelu.default", OpKind::kPointwise},
      {"aten::tanh", OpKind::kPointwise},
      {"mse_loss", OpKind::kReduction},
  }));
  CAPTURE(op);

  CHECK(ClassifyOp(op) == kind);
}

TEST_CASE("RulesPolicy gives a heavy product to the library first", "[policy]") {
  CHECK(BestOf(LinearChain(), ChainActions()) == "library linear");
}

TEST_CASE("RulesPolicy takes eager's own call where our kernel is slower", "[policy]") {
  const auto [speedup, best] = GENERATE(table<double, std::string>(
      {{0.85, "library mean"}, {0.99, "tile mean"}, {1.4, "tile mean"}}));
  CAPTURE(speedup);
  SearchState state = LinearChain();
  state.ops = {Op("mean", "mean.dim", {"x"})};
  state.program = "//@ mtmc 1 cuda\n//@ launch mean grid=1 block=256 args=(x, y)\n";
  state.contraction_flops = 0;
  state.evaluation.speedup = speedup;

  CHECK(BestOf(state, {Act(ActionType::kStop, "stop"),
                       Act(ActionType::kTile, "tile mean", {"mean"}, {"mean"}),
                       Act(ActionType::kTune, "tune mean", {"mean"}, {"mean"}),
                       Act(ActionType::kLibrary, "library mean", {"mean"}, {"mean"})}) == best);
}

TEST_CASE("RulesPolicy takes the TF32 tier where the class allows it", "[policy]") {
  SearchState state = LinearChain();
  state.precision = PrecisionClass::kTf32;

  CHECK(BestOf(state, ChainActions()) == "library linear tf32");
}

TEST_CASE("RulesPolicy fuses the pointwise chain once the product is a library call", "[policy]") {
  SearchState state = LinearChain();
  state.program =
      "//@ mtmc 1 cuda\n//@ buffer linear f32[1]\n//@ buffer gelu f32[1]\n//@ buffer mul f32[1]\n"
      "//@ call aten::linear(x, w) -> linear\n//@ launch gelu grid=1 block=256\n"
      "//@ launch mul grid=1 block=256\n//@ launch softmax grid=1 block=256\n";
  state.evaluation.median_seconds = 0.03;
  std::vector<Action> actions = ChainActions();
  std::erase_if(actions, [](const Action& action) { return action.type == ActionType::kLibrary; });

  CHECK(BestOf(state, actions) == "fuse mul into gelu");
}

TEST_CASE("RulesPolicy turns all convolutions to channels last on CUDA first", "[policy]") {
  SearchState state = LinearChain();
  const auto turn = [](const std::string& text, const std::string& rewrites) {
    Action action = Act(ActionType::kReorder, text, {"linear"}, {"linear"});
    action.arguments["rewrites"] = rewrites;
    return action;
  };
  const Action all = turn("all", "channels_last:a,channels_last:b");
  const Action one = turn("one", "channels_last:a");
  Action exact = all;
  exact.arguments["precision"] = "ieee";
  state.device.is_cuda = true;

  CHECK(ScoreOf(state, all) > ScoreOf(state, one));
  CHECK(ScoreOf(state, all) > ScoreOf(state, exact));

  const double on_cuda = ScoreOf(state, all);
  state.device.is_cuda = false;
  CHECK(ScoreOf(state, all) < on_cuda);
}

TEST_CASE("RulesPolicy prefers the fusion that saves more bytes", "[policy]") {
  SearchState state = LinearChain();
  state.ops[1].result_bytes = kMegabyte;
  const Action small = Act(ActionType::kFuse, "small", {}, {"gelu", "mul"});
  const Action large = Act(ActionType::kFuse, "large", {}, {"mul", "softmax"});
  state.ops[3].op = "aten::relu.default";

  CHECK(ScoreOf(state, large) > ScoreOf(state, small));
}

TEST_CASE("RulesPolicy sweeps once accesses are wide", "[policy]") {
  SearchState state = LinearChain();
  state.contraction_flops = 0;
  state.history.push_back(
      {.action = "vectorize mul with 4 elements per access", .outcome = "faster"});
  state.program = "//@ mtmc 1 cuda\n//@ launch softmax grid=1 block=256 args=(x, y)\n";
  const std::vector<Action> actions = {
      Act(ActionType::kStop, "stop"),
      Act(ActionType::kVectorize, "vectorize softmax", {"softmax"}, {"mul", "softmax"}),
      Act(ActionType::kTune, "tune softmax", {"softmax"}, {"mul", "softmax"})};

  CHECK(BestOf(state, actions) == "tune softmax");
}

TEST_CASE("RulesPolicy widens accesses before it sweeps", "[policy]") {
  SearchState state = LinearChain();
  state.contraction_flops = 0;
  state.program = "//@ mtmc 1 cuda\n//@ launch softmax grid=1 block=256 args=(x, y)\n";
  const std::vector<Action> actions = {
      Act(ActionType::kVectorize, "vectorize softmax", {"softmax"}, {"mul", "softmax"}),
      Act(ActionType::kTune, "tune softmax", {"softmax"}, {"mul", "softmax"})};

  CHECK(BestOf(state, actions) == "vectorize softmax");
}

TEST_CASE("RulesPolicy splits rows when blocks leave the device empty", "[policy]") {
  SearchState state = LinearChain();
  state.contraction_flops = 0;
  state.device.is_cuda = true;
  state.device.compute_units = 132;
  state.program = "//@ mtmc 1 cuda\n//@ launch softmax grid=64 block=256 args=(x, y)\n";
  state.evaluation.kernels = {
      {.kernel = "softmax", .seconds = 1e-3, .share_ratio = 1, .blocks = 64}};
  const std::vector<Action> actions = {
      Act(ActionType::kSplit, "split softmax", {"softmax"}, {"mul", "softmax"}),
      Act(ActionType::kVectorize, "vectorize softmax", {"softmax"}, {"mul", "softmax"})};

  CHECK(BestOf(state, actions) == "split softmax");
  state.evaluation.kernels[0].blocks = 4096;
  CHECK(BestOf(state, actions) == "vectorize softmax");
}

TEST_CASE("RulesPolicy takes all that algebra can do at once, before anything else", "[policy]") {
  Action one = Act(ActionType::kSimplify, "simplify softmax");
  one.arguments["rewrites"] = "reduce_first:softmax";
  Action all = Act(ActionType::kSimplify, "simplify all");
  all.arguments["rewrites"] = "reduce_first:softmax,one_element:mul";
  const std::vector<Action> actions = {
      Act(ActionType::kVectorize, "vectorize softmax", {"softmax"}, {"mul", "softmax"}), one, all};

  CHECK(BestOf(LinearChain(), actions) == "simplify all");
  CHECK(BestOf(LinearChain(), {actions[0], one}) == "simplify softmax");
}

TEST_CASE("RulesPolicy simplifies in FP32 throughout where the vendor's choice was wrong",
          "[policy]") {
  const Action plain = Act(ActionType::kSimplify, "simplify conv");
  Action exact = Act(ActionType::kSimplify, "simplify conv in FP32");
  exact.arguments["precision"] = "ieee";
  SearchState state = LinearChain();

  CHECK(BestOf(state, {exact, plain}) == "simplify conv");
  state.history = {{.action = plain.text, .outcome = "wrong", .speedup = {}}};
  CHECK(BestOf(state, {exact, plain}) == "simplify conv in FP32");
}

TEST_CASE("RulesPolicy takes short sums where longer ones were wrong", "[policy]") {
  Action usual = Act(ActionType::kTensorize, "tensorize linear", {"linear"}, {"linear"},
                     {{"precision", "tf32x3"}});
  Action exact = usual;
  exact.text = "tensorize linear in short sums";
  exact.arguments["sums"] = "short";
  SearchState state = LinearChain();

  CHECK(BestOf(state, {exact, usual}) == usual.text);
  state.history = {{.action = usual.text, .outcome = "wrong", .speedup = {}}};
  CHECK(BestOf(state, {exact, usual}) == exact.text);
}

TEST_CASE("RulesPolicy goes on near the roofline while the baseline is faster", "[policy]") {
  SearchState state = LinearChain();
  state.contraction_flops = 0;
  state.evaluation.speed_of_light_ratio = 0.93;
  const std::vector<Action> actions = {
      Act(ActionType::kStop, "stop"),
      Act(ActionType::kVectorize, "vectorize softmax", {"softmax"}, {"mul", "softmax"})};

  state.evaluation.speedup = 1.1;
  CHECK(BestOf(state, actions) == "stop");
  state.evaluation.speedup = 0.92;
  CHECK(BestOf(state, actions) == "vectorize softmax");
}

TEST_CASE("Facts counts only values that the program keeps in memory", "[policy]") {
  SearchState state = LinearChain();
  state.program = "//@ mtmc 1 cuda\n//@ buffer mul f32[1]\n//@ launch a grid=1\n";

  const Facts facts(state);
  const RegionFacts region =
      facts.Describe(Act(ActionType::kFuse, "fuse", {}, {"linear", "gelu", "mul", "softmax"}));

  CHECK(facts.intermediate_bytes() == 2.0 * 64 * kMegabyte);
  CHECK(region.joined_bytes == 2.0 * 64 * kMegabyte);
}

TEST_CASE("RulesPolicy never repeats a failed action", "[policy]") {
  SearchState state = LinearChain();
  const std::string outcome = GENERATE("failed", "wrong", "slower");
  state.history = {{.action = "library linear", .outcome = outcome, .speedup = {}}};

  const std::vector<Action> actions = ChainActions();
  const Distribution distribution = RulesPolicy::Score(state, actions, 1.0);

  CHECK(BestOf(state, actions) != "library linear");
  CHECK(distribution.probabilities[3] < 1e-4);
}

TEST_CASE("RulesPolicy stops near the speed of light", "[policy]") {
  SearchState state = LinearChain();
  state.evaluation.speed_of_light_ratio = 0.95;

  CHECK(BestOf(state, ChainActions()) == "stop");
}

TEST_CASE("RulesPolicy stops when everything was tried in vain", "[policy]") {
  SearchState state = LinearChain();
  for (const Action& action : ChainActions()) {
    if (action.type == ActionType::kStop) continue;
    state.history.push_back({.action = action.text, .outcome = "slower", .speedup = 0.9});
  }

  CHECK(BestOf(state, ChainActions()) == "stop");
}

TEST_CASE("RulesPolicy captures a plan of many short launches", "[policy]") {
  SearchState state = LinearChain();
  state.evaluation.median_seconds = 20e-6;
  state.contraction_flops = 0;
  state.minimum_bytes = 4096;
  const std::vector<Action> actions = {Act(ActionType::kStop, "stop"),
                                       Act(ActionType::kCapture, "capture"),
                                       Act(ActionType::kVectorize, "vectorize", {"gelu"})};

  CHECK(BestOf(state, actions) == "capture");
}

TEST_CASE("RulesPolicy vectorizes the kernel that takes the time", "[policy]") {
  SearchState state = LinearChain();
  state.evaluation.limit = "memory";
  state.evaluation.kernels = {{.kernel = "gelu", .seconds = 0.01, .share_ratio = 0.8},
                              {.kernel = "mul", .seconds = 0.001, .share_ratio = 0.1}};
  const Action gelu = Act(ActionType::kVectorize, "vectorize gelu", {"gelu"}, {"gelu"});
  const Action mul = Act(ActionType::kVectorize, "vectorize mul", {"mul"}, {"mul"});

  CHECK(ScoreOf(state, gelu) > ScoreOf(state, mul) + 1.0);
}

TEST_CASE("RulesPolicy repairs a failed program before anything else", "[policy]") {
  SearchState state = LinearChain();
  state.evaluation.repair = ActionType::kFixBuild;
  std::vector<Action> actions = ChainActions();
  actions.push_back(Act(ActionType::kFixBuild, "fix build"));
  actions.push_back(Act(ActionType::kFixResult, "fix result"));

  CHECK(BestOf(state, actions) == "fix build");
}

TEST_CASE("RulesPolicy takes the first of several repairs", "[policy]") {
  SearchState state = LinearChain();
  state.evaluation.repair = ActionType::kFixResult;
  std::vector<Action> actions = ChainActions();
  actions.push_back(Act(ActionType::kFixResult, "naive", {}, {}, {{"rank", "2"}}));
  actions.push_back(Act(ActionType::kFixResult, "own", {}, {}, {{"rank", "0"}}));

  CHECK(BestOf(state, actions) == "own");
}

TEST_CASE("RulesPolicy leaves a heavy product to the vendor", "[policy]") {
  const SearchState state = LinearChain();
  const Action ours = Act(ActionType::kTile, "tile linear", {"linear"}, {"linear"});
  Action instead = ours;
  instead.arguments["own"] = "yes";

  CHECK(ScoreOf(state, instead) + 1.0 < ScoreOf(state, ours));
}

TEST_CASE("RulesPolicy scores do not depend on the order of the actions", "[policy]") {
  const SearchState state = LinearChain();
  std::vector<Action> actions = ChainActions();
  const Distribution forward = RulesPolicy::Score(state, actions, 1.0);

  std::reverse(actions.begin(), actions.end());
  Distribution backward = RulesPolicy::Score(state, actions, 1.0);
  std::reverse(backward.scores.begin(), backward.scores.end());

  CHECK(forward.scores == backward.scores);
}

TEST_CASE("RulesPolicy answers an empty state with finite scores", "[policy]") {
  const Distribution distribution = RulesPolicy::Score({}, ChainActions(), 1.0);

  for (const double score : distribution.scores) CHECK(std::isfinite(score));
}

TEST_CASE("Rule opinions stay on their stated scale", "[policy]") {
  const SearchState state = LinearChain();
  const Facts facts(state);

  for (const Rule& rule : RuleTable()) {
    for (const Action& action : ChainActions()) {
      INFO(rule.name << " about " << action.text);
      CHECK(rule.function(facts, action, facts.Describe(action)) <= 5.0);
    }
  }
}

TEST_CASE("Facts estimates the roofline without a profile", "[policy]") {
  SearchState state = LinearChain();
  state.evaluation.median_seconds = 0.02;

  const Facts facts(state);

  CHECK(facts.limit() == Limit::kCompute);
  // 5e11 operations at 5e13 per second are 10 ms.
  CHECK_THAT(facts.speed_of_light_ratio().value(), Catch::Matchers::WithinAbs(0.5, 1e-9));
  CHECK(facts.dispatches() == 4);
}

TEST_CASE("Facts finds all launches of a region, and its longest one", "[policy]") {
  SearchState state = LinearChain();
  state.evaluation.kernels = {
      {.kernel = "mul", .seconds = 2e-3, .share_ratio = 0.2, .blocks = 20},
      {.kernel = "mul", .seconds = 3e-3, .share_ratio = 0.3, .blocks = 30},
      {.kernel = "mul_2", .seconds = 5e-3, .share_ratio = 0.5, .blocks = 50}};
  const Action mul = Act(ActionType::kTile, "tile mul", {"mul"});

  // `mul_2` is a group of its own.
  const RegionFacts alone = Facts(state).Describe(mul);
  CHECK(alone.share_ratio == Approx(0.5));
  CHECK(alone.blocks == 30);

  // Or the second kernel of one that is split.
  state.evaluation.kernels.push_back({.kernel = "mul_total", .seconds = 1e-6});
  const RegionFacts split = Facts(state).Describe(mul);
  CHECK(split.share_ratio == Approx(1.0));
  CHECK(split.blocks == 50);

  // The first of those that take as long.
  state.evaluation.kernels.insert(state.evaluation.kernels.begin(),
                                  {.kernel = "mul_pieces", .seconds = 5e-3, .blocks = 70});
  CHECK(Facts(state).Describe(mul).blocks == 70);
}

TEST_CASE("RulesPolicy lets counters speak for and against accesses", "[policy]") {
  const Action vectorize = Act(ActionType::kVectorize, "vectorize gelu", {"gelu"}, {"gelu"});
  const Action reorder = Act(ActionType::kReorder, "reorder gelu", {"gelu"}, {"gelu"});
  SearchState state = LinearChain();
  state.evaluation.kernels = {{.kernel = "gelu", .seconds = 0.2, .share_ratio = 1}};
  const double vectorize_before = ScoreOf(state, vectorize);
  const double reorder_before = ScoreOf(state, reorder);
  profile::Values& metrics = state.evaluation.kernels[0].metrics;

  metrics = {{"load_sectors_per_request", 4}};
  CHECK(ScoreOf(state, vectorize) > vectorize_before);
  metrics = {{"load_sectors_per_request", 16}};
  CHECK(ScoreOf(state, vectorize) < vectorize_before);
  metrics = {{"load_sectors_per_request", 4}, {"dram_throughput_ratio", 0.9}};
  CHECK(ScoreOf(state, vectorize) < vectorize_before);
  metrics = {{"load_sectors_per_request", 32}, {"load_used_ratio", 0.125}};
  CHECK(ScoreOf(state, reorder) > reorder_before);
}

TEST_CASE("RulesPolicy fills what the counters show idle", "[policy]") {
  const Action split = Act(ActionType::kSplit, "split mul", {"mul"}, {"mul"});
  const Action pipeline = Act(ActionType::kPipeline, "pipeline mul", {"mul"}, {"mul"});
  const Action tune = Act(ActionType::kTune, "tune mul", {"mul"}, {"mul"});
  SearchState state = LinearChain();
  state.evaluation.kernels = {{.kernel = "mul", .seconds = 0.2, .share_ratio = 1}};
  const double split_before = ScoreOf(state, split);
  const double pipeline_before = ScoreOf(state, pipeline);
  const double tune_before = ScoreOf(state, tune);

  state.evaluation.kernels[0].metrics = {{"sm_active_ratio", 0.3},
                                         {"stall_long_scoreboard_ratio", 0.7},
                                         {"local_bytes", 2e6},
                                         {"dram_bytes", 4e6}};

  CHECK(ScoreOf(state, split) > split_before);
  CHECK(ScoreOf(state, pipeline) > pipeline_before);
  CHECK(ScoreOf(state, tune) > tune_before);
}

}  // namespace
}  // namespace mtmc::policy

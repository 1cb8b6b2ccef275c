// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/storm.h"

#include <google/protobuf/text_format.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/temp_dir.h"
#include "common/testing/fake_clock.h"
#include "common/testing/status_matchers.h"
#include "mtmc/v1/graph.pb.h"
#include "worker/builder/client.h"
#include "worker/daemon/evaluator.h"
#include "worker/daemon/lease_loop.h"
#include "worker/reference/client.h"
#include "worker/runner/client.h"

namespace mtmc::fault {
namespace {

constexpr char kChild[] = MTMC_BINARY_DIR "/../tests/mtmc-fault-child";
constexpr int kTrials = 1000;
constexpr uint32_t kSeed = 20261121;
constexpr int64_t kMemoryLimit = int64_t{128} << 20;

struct Row {
  const char* fault;
  const char* expected;
  // A deadline must pass.
  bool is_slow = false;
};

// By the stage that meets it. `second.` is met by the second variant of a sweep
// alone: the first one wins then.
constexpr std::array<Row, 44> kRows = {{
    {"build crash", "KIND_CRASH"},
    {"build exit", "KIND_CRASH"},
    {"build kill", "lost"},
    {"build flood", "measured"},
    {"build flood_crash", "KIND_CRASH"},
    {"build memory", "KIND_OUT_OF_MEMORY"},
    {"build garbage", "KIND_CRASH", true},
    {"build hang", "KIND_TIMEOUT", true},
    {"load crash", "KIND_CRASH"},
    {"load exit", "KIND_CRASH"},
    {"load kill", "lost"},
    {"load hang", "KIND_TIMEOUT", true},
    {"execute crash", "KIND_CRASH"},
    {"execute exit", "KIND_CRASH"},
    {"execute kill", "lost"},
    {"execute flood", "measured"},
    {"execute flood_crash", "KIND_CRASH"},
    {"execute memory", "KIND_OUT_OF_MEMORY"},
    {"execute context_lost", "KIND_OUT_OF_BOUNDS"},
    {"execute mute", "KIND_CRASH", true},
    {"execute spin", "KIND_TIMEOUT", true},
    {"execute stop", "KIND_TIMEOUT", true},
    {"execute fork", "KIND_TIMEOUT", true},
    {"time crash", "KIND_CRASH"},
    {"time kill", "lost"},
    {"time flood", "measured"},
    {"time context_lost", "KIND_OUT_OF_BOUNDS"},
    {"time memory", "KIND_OUT_OF_MEMORY"},
    {"time hang", "KIND_TIMEOUT", true},
    {"profile crash", "measured"},
    {"profile exit", "measured"},
    {"profile kill", "measured"},
    {"profile flood", "measured"},
    {"profile memory", "measured"},
    {"profile context_lost", "measured"},
    {"unload crash", "measured"},
    {"second.load crash", "measured"},
    {"second.load kill", "lost"},
    {"second.execute crash", "measured"},
    {"second.execute memory", "measured"},
    {"second.execute context_lost", "measured"},
    {"second.time crash", "measured"},
    {"second.time exit", "measured"},
    {"second.time kill", "lost"},
}};

constexpr std::array<const char*, 8> kReferenceFaults = {
    "load crash\n",    "prepare crash\n",       "prepare kill\n",   "prepare context_lost\n",
    "compare crash\n", "time_baseline crash\n", "compare memory\n", "compare context_lost\n"};

constexpr std::array<const char*, 3> kCanaryFaults = {"canary crash\n", "canary context_lost\n",
                                                      "canary kill\n"};

std::string Text(const std::string& fault) {
  const std::string tune = fault.starts_with("second.") ? "//@ tune WIDTH = 32 64\n" : "";
  const std::string width = tune.empty() ? "64" : "WIDTH";
  return absl::StrCat("//@ mtmc 1 opencl\n//@ input x f32[256]\n//@ output y f32[256]\n", tune,
                      "//@ launch f grid=(256 / ", width, ") block=", width, R"( args=(x, y)
__kernel void f(__global const float* x, __global float* y) {
  y[get_global_id(0)] = max(x[get_global_id(0)], 0.0f);
}
)",
                      fault.empty() ? "" : "// fault: " + fault + "\n");
}

v1::Graph Graph() {
  v1::Graph graph;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      R"pb(inputs {
             name: "x"
             kind: KIND_USER_INPUT
             type { data_type: DATA_TYPE_F32 shape: 256 }
           }
           nodes {
             name: "relu"
             op: "aten::relu.default"
             arguments { value: "x" }
             argument_names: "self"
             results: "relu"
             result_types { data_type: DATA_TYPE_F32 shape: 256 }
           }
           outputs {
             name: "y"
             kind: KIND_USER_OUTPUT
             value: "relu"
             type { data_type: DATA_TYPE_F32 shape: 256 }
           })pb",
      &graph));
  return graph;
}

// Half of the trials are good; what the others do wrong is drawn.
class Weather {
 public:
  explicit Weather(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::ofstream(folder_ / "problem") << Graph().SerializeAsString();
  }

  Trial Draw() {
    constexpr double kFaulty = 0.4;
    constexpr double kSlow = 0.2;
    Trial trial{.request = {}, .reference_fault = {}, .canary_faults = {}, .expected = "measured"};
    Row row{"", "measured"};
    if (Chance(kFaulty)) {
      do {
        row = Pick(kRows);
      } while (row.is_slow && !Chance(kSlow));
    }
    trial.expected = row.expected;
    Write(row, trial.request);
    if (Chance(0.05)) trial.reference_fault = Pick(kReferenceFaults);
    while (Chance(0.3)) trial.canary_faults += Pick(kCanaryFaults);
    return trial;
  }

 private:
  bool Chance(double probability) { return std::bernoulli_distribution(probability)(random_); }

  template <typename Choices>
  typename Choices::value_type Pick(const Choices& choices) {
    return choices[std::uniform_int_distribution<size_t>(0, choices.size() - 1)(random_)];
  }

  // A digest names the blob's path here.
  void Write(const Row& row, v1::EvaluationRequest& request) {
    const std::string path = folder_ / absl::StrCat("program-", ++num_written_);
    std::ofstream(path) << Text(row.fault);
    request.mutable_program()->set_sha256(path);
    request.mutable_problem()->mutable_source()->set_sha256(folder_ / "problem");
    auto& options = *request.mutable_options();
    options.set_omit_confirmation(true);
    options.set_hidden_seeds(1);
    for (auto* timeout : {options.mutable_build_timeout(), options.mutable_verify_timeout(),
                          options.mutable_measure_timeout()}) {
      // A busy machine must not turn a good candidate into a slow one.
      row.is_slow ? timeout->set_nanos(200'000'000) : timeout->set_seconds(60);
    }
  }

  const std::filesystem::path folder_;
  std::mt19937 random_{kSeed};
  int num_written_ = 0;
};

}  // namespace

TEST_CASE("A thousand evaluations with random faults are each reported once and justly",
          "[fault]") {
  auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  const std::string root = folder->path().string();
  for (const char* child : {"/reference", "/runner", "/builder"}) {
    std::filesystem::create_directories(root + child);
  }
  Weather weather(folder->path());
  std::vector<Trial> trials;
  for (int i = 0; i < kTrials; ++i) trials.push_back(weather.Draw());
  testing::FakeClock lease_clock;
  StormCoordinator coordinator({.trials = trials,
                                .reference_folder = root + "/reference",
                                .runner_folder = root + "/runner",
                                .seed = kSeed},
                               lease_clock);
  std::unique_ptr<worker::LeaseLoop> loop;
  const auto is_cancelled = [&] { return loop && loop->is_cancelled(); };
  worker::ReferenceClient reference({.python = kChild,
                                     .package_folder = root,
                                     .scratch = root + "/reference",
                                     .max_resident_bytes = kMemoryLimit,
                                     .is_cancelled = is_cancelled});
  worker::BuilderClient builder({.program = kChild,
                                 .scratch = root + "/builder",
                                 .tools = {},
                                 .max_resident_bytes = kMemoryLimit,
                                 .is_cancelled = is_cancelled});
  worker::RunnerClient runner({.program = kChild,
                               .scratch = root + "/runner",
                               .tools = {},
                               .max_resident_bytes = kMemoryLimit,
                               .is_cancelled = is_cancelled});
  pipe::v1::RunnerRequest open;
  open.mutable_open();
  const auto opened = runner.Call(open, absl::Seconds(60));
  REQUIRE(opened.is_answered());
  base::RealClock clock;
  worker::Evaluator evaluator(
      {builder, runner, reference},
      [](const v1::Digest& digest) -> absl::StatusOr<std::string> { return digest.sha256(); },
      clock, {.device = opened.response.opened().device()});
  loop = std::make_unique<worker::LeaseLoop>(
      coordinator, lease_clock, v1::Worker(),
      [&](const v1::Lease& lease, const auto& progress) {
        return evaluator.Evaluate(lease.evaluation(), progress);
      },
      [&] { return runner.CheckHealth(); });
  // The pauses of the loop, and thirty seconds of quarantine, pass quickly.
  std::jthread time([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      lease_clock.Advance(absl::Seconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const absl::Time start = absl::Now();

  CHECK_THAT(loop->Run(coordinator.stop()), testing::IsOk());

  std::cout << "{\"evaluations\": " << coordinator.outcomes().size()
            << ", \"lost_calls\": " << coordinator.num_lost_calls()
            << ", \"called_off\": " << coordinator.num_called_off()
            << ", \"calls_in_quarantine\": " << coordinator.num_quarantined()
            << ", \"seconds\": " << absl::ToDoubleSeconds(absl::Now() - start) << "}" << std::endl;
  CHECK(coordinator.outcomes().size() == trials.size());
  for (const auto& [index, outcomes] : coordinator.outcomes()) {
    std::ifstream file(trials[index].request.program().sha256());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    INFO("trial " << index << ", reference " << trials[index].reference_fault << ", canary "
                  << trials[index].canary_faults << "\n"
                  << text);
    CHECK(outcomes == std::vector<std::string>{trials[index].expected});
  }
  loop.reset();
}

}  // namespace mtmc::fault

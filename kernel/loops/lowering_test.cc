// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "kernel/graph/graph_proto.h"
#include "kernel/loops/interpreter.h"
#include "kernel/loops/loop.h"
#include "mtmc/v1/graph.pb.h"

namespace mtmc::kernel {
namespace {

// Relative to the larger of 1 and the expected value. Inputs are f32 numbers and
// both sides compute in double; literals such as eps differ by f32 rounding.
constexpr double kTolerance = 1e-9;

struct Case {
  std::string name;
  Graph graph;
  nlohmann::json inputs;
  nlohmann::json outputs;
};

double Number(const nlohmann::json& value) {
  return value.is_string() ? std::strtod(value.get<std::string>().c_str(), nullptr)
                           : value.get<double>();
}

// Runs make_cases.py with the project's Python. Empty when there is none.
std::vector<Case> LoadCases() {
  const char* python = std::getenv("MTMC_PYTHON");
  if (python == nullptr || !std::filesystem::exists(python)) return {};
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("mtmc_cases_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "cases.jsonl").string();
  const std::string command = std::string("PYTHONPATH=") + MTMC_TEST_DATA +
                              "/../../../worker/reference " + python + " " + MTMC_TEST_DATA +
                              "/make_cases.py " + path;
  REQUIRE(std::system(command.c_str()) == 0);
  std::vector<Case> cases;
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    v1::Graph proto;
    REQUIRE(google::protobuf::util::JsonStringToMessage(json["graph"].dump(), &proto).ok());
    absl::StatusOr<Graph> graph = FromProto(proto);
    INFO(json["name"] << ": " << graph.status());
    REQUIRE(graph.ok());
    cases.push_back({json["name"], *graph, json["inputs"], json["outputs"]});
  }
  std::filesystem::remove_all(folder);
  return cases;
}

HostTensors InputsOf(const Case& c) {
  HostTensors tensors;
  for (const GraphInput& input : c.graph.inputs) {
    HostTensor tensor{input.type, {}};
    for (const nlohmann::json& value : c.inputs[input.name]) {
      tensor.values.push_back(Number(value));
    }
    tensors.emplace(input.name, std::move(tensor));
  }
  return tensors;
}

bool IsClose(double got, double expected) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::fabs(got - expected) <= kTolerance * std::max(1.0, std::fabs(expected));
}

// Empty when every output is what PyTorch computes, else what is wrong.
std::string Compare(const Case& c) {
  const absl::StatusOr<LoopNest> nest = LowerToLoops(c.graph);
  if (!nest.ok()) return nest.status().ToString();
  const absl::StatusOr<HostTensors> values = Interpret(*nest, InputsOf(c));
  if (!values.ok()) return values.status().ToString() + "\n" + ToText(*nest);
  for (const auto& [name, expected] : c.outputs.items()) {
    const HostTensor& got = values->find(name)->second;
    if (got.values.size() != expected.size()) return name + " has another size";
    for (size_t i = 0; i < expected.size(); ++i) {
      if (IsClose(got.values[i], Number(expected[i]))) continue;
      return name + "[" + std::to_string(i) + "] is " + std::to_string(got.values[i]) +
             " and not " + expected[i].dump() + "\n" + ToText(*nest);
    }
  }
  return "";
}

TEST_CASE("LowerToLoops keeps the meaning of every PyTorch operator it has a form for", "[loops]") {
  const std::vector<Case> cases = LoadCases();
  if (cases.empty()) {
    WARN("SKIPPED: MTMC_PYTHON names no Python with PyTorch");
    return;
  }

  for (const Case& c : cases) {
    INFO(c.name);
    CHECK(Compare(c) == "");
  }
}

}  // namespace
}  // namespace mtmc::kernel

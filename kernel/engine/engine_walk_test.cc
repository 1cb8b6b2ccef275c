// SPDX-License-Identifier: Apache-2.0
// Random walks over the legal actions of the example problems: whatever sequence a policy picks,
// the program must parse, pass every static check, compile, and compute what PyTorch computes.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <random>

#include "common/base/file.h"
#include "common/base/run_process.h"
#include "common/base/temp_dir.h"
#include "google/protobuf/util/json_util.h"
#include "kernel/engine/engine.h"
#include "kernel/graph/graph_proto.h"
#include "kernel/graph/text.h"
#include "kernel/program/checker.h"
#include "kernel/program/interface.h"
#include "kernel/program/parser.h"
#include "mtmc/v1/graph.pb.h"

namespace mtmc::kernel {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxSteps = 6;

// A GPU like an H200, and a CPU device as PoCL reports it.
EngineOptions OptionsFor(Dialect dialect) {
  if (dialect == Dialect::kCuda) {
    return {.target = {.dialect = dialect,
                       .shared_bytes_per_block = int64_t{227} * 1024,
                       .compute_units = 132,
                       .cache_bytes = 50 << 20},
            .allow_tf32 = true};
  }
  return {.target = {.dialect = dialect,
                     .max_threads_per_block = 4096,
                     .compute_units = 2,
                     .warp_size = 1,
                     .vector_bytes = 32,
                     .cache_bytes = 32 << 20}};
}

Graph ReadGraph(const fs::path& path) {
  v1::Graph proto;
  REQUIRE(google::protobuf::util::JsonStringToMessage(*base::ReadFile(path), &proto).ok());
  absl::StatusOr<Graph> graph = FromProto(proto);
  REQUIRE(graph.ok());
  return *std::move(graph);
}

// Runs a script of testing/ with the project's Python; false when it cannot be had.
bool RunPython(const std::vector<std::string>& arguments, std::string& output) {
  const char* python = std::getenv("MTMC_PYTHON");
  if (python == nullptr) return false;
  base::SubprocessOptions options{.argv = {python}};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  const absl::StatusOr<base::CompletedProcess> process =
      base::RunProcess(options, {.timeout = absl::Minutes(10)});
  if (!process.ok()) return false;
  output = process->output + process->error;
  return process->exit.exit_code == 0;
}

void CheckText(const Graph& graph, const EngineProgram& made, const EngineOptions& options) {
  const ParseResult parsed = ParseProgram(made.text);
  INFO(made.schedule);
  INFO(ToText(parsed.diagnostics));
  REQUIRE(parsed.program.has_value());
  CheckLimits limits{.max_threads_per_block = options.target.max_threads_per_block,
                     .max_shared_bytes = options.target.shared_bytes_per_block};
  for (const GraphNode& node : graph.nodes) {
    limits.allowed_calls.insert(node.op.substr(0, node.op.find('.')));
  }
  // Products on tensor cores, and what algebra leaves of products and convolutions.
  limits.allowed_calls.insert({"aten::bmm", "aten::linear", "aten::conv1d", "aten::conv2d",
                               "aten::conv3d", "aten::convolution"});
  for (const Bindings& bindings : Variants(*parsed.program, /*limit=*/8)) {
    const std::vector<Diagnostic> diagnostics =
        CheckProgram(*parsed.program, FromGraph(graph), limits, bindings);
    INFO(ToText(diagnostics));
    CHECK(diagnostics.empty());
  }
}

// Takes random legal steps and writes every program it sees as NAME.STEP.DIALECT.
void Walk(const Graph& graph, Dialect dialect, unsigned seed, const std::string& name,
          const fs::path& folder) {
  constexpr StartMapping kStarts[] = {StartMapping::kNaive, StartMapping::kEager,
                                      StartMapping::kOwn};
  EngineOptions options = OptionsFor(dialect);
  options.start = kStarts[seed % std::size(kStarts)];
  std::mt19937 random(seed);
  absl::StatusOr<EngineProgram> program = CreateProgram(graph, options);
  for (int step = 0; step < kMaxSteps; ++step) {
    INFO(name << " step " << step);
    REQUIRE(program.ok());
    CheckText(graph, *program, options);
    const bool is_cuda = dialect == Dialect::kCuda;
    // A PoCL build takes a second: the first and the last program stand for the walk.
    if (is_cuda || step == 0 || step == kMaxSteps - 1) {
      const fs::path file =
          folder / Concat(name, ".", seed, "-", step, is_cuda ? ".cuda" : ".opencl");
      REQUIRE(base::WriteFileAtomically(file, program->text).ok());
    }
    const absl::StatusOr<std::vector<EngineAction>> actions =
        ListActions(graph, program->schedule, options);
    REQUIRE(actions.ok());
    REQUIRE(actions->back().type == "stop");
    if (actions->size() == 1) return;
    // Algebra comes first in half of the walks that know any: one action of many else.
    const bool simplifies = step == 0 && seed % 2 == 1 && actions->front().type == "simplify";
    const size_t choice = simplifies ? 0 : random() % (actions->size() - 1);
    const EngineAction& action = (*actions)[choice];
    INFO(action.text);
    program = ApplyAction(graph, program->schedule, action.text, options);
  }
}

TEST_CASE("Every walk over legal actions gives sound programs with PyTorch's results",
          "[engine][integration]") {
  absl::StatusOr<base::TempDir> folder = base::TempDir::Create("mtmc-walk");
  REQUIRE(folder.ok());
  const fs::path testing = MTMC_TEST_DATA;
  const fs::path repository = testing.parent_path().parent_path().parent_path();
  const fs::path graphs = folder->path() / "graphs";
  const fs::path programs = folder->path() / "programs";
  fs::create_directories(graphs);
  fs::create_directories(programs);
  std::string output;
  if (!RunPython({testing / "trace_problems.py", repository, graphs}, output)) {
    std::cout << "SKIPPED: the example problems cannot be traced: " << output << "\n";
    return;
  }

  for (const fs::directory_entry& entry : fs::directory_iterator(graphs)) {
    const Graph graph = ReadGraph(entry.path());
    for (Dialect dialect : {Dialect::kCuda, Dialect::kOpenCl}) {
      // PoCL is slow to build; what it runs is a sample.
      const unsigned seeds = dialect == Dialect::kCuda ? 3 : 1;
      for (unsigned seed = 1; seed <= seeds; ++seed) {
        Walk(graph, dialect, seed, entry.path().stem(), programs);
      }
    }
  }

  const bool is_right = RunPython({testing / "check_programs.py", graphs, programs}, output);
  INFO(output);
  CHECK(is_right);
}

}  // namespace
}  // namespace mtmc::kernel

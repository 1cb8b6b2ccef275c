// SPDX-License-Identifier: Apache-2.0
// mtmc-engine: the built-in coder on the command line, to see what it prints for a traced graph.
//
//   mtmc-engine print GRAPH.json --dialect cuda
//   mtmc-engine actions GRAPH.json --apply "fuse gelu into linear (line 19)"
//   mtmc-engine check GRAPH.json     says whether a worker would take the program
//   mtmc-engine operators            prints docs/operators.md
#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "google/protobuf/util/json_util.h"
#include "kernel/engine/engine.h"
#include "kernel/engine/operator_document.h"
#include "kernel/graph/graph_proto.h"
#include "kernel/graph/operators.h"
#include "kernel/program/checker.h"
#include "kernel/program/interface.h"
#include "kernel/program/parser.h"
#include "mtmc/v1/graph.pb.h"

namespace mtmc::kernel {
namespace {

struct Arguments {
  std::string graph_path;
  std::string dialect = "opencl";
  // Applied one after the other to the start program.
  std::vector<std::string> actions;
  // Text of a schedule to begin with; the start program's where it is empty.
  std::string schedule_path;
  bool allow_tf32 = false;
  // Of an OpenCL device: 1 is a CPU.
  int warp_size = 1;
};

absl::StatusOr<Graph> ReadGraph(const std::string& path) {
  MTMC_ASSIGN_OR_RETURN(const std::string json, base::ReadFile(path));
  v1::Graph proto;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &proto);
  if (!status.ok()) return absl::InvalidArgumentError(status.ToString());
  return FromProto(proto);
}

EngineOptions OptionsFor(const Arguments& arguments) {
  EngineOptions options{.allow_tf32 = arguments.allow_tf32};
  if (arguments.dialect == "cuda") {
    options.target = {.dialect = Dialect::kCuda,
                      .shared_bytes_per_block = int64_t{227} * 1024,
                      .compute_units = 132,
                      .cache_bytes = int64_t{50} * 1024 * 1024};
  } else {
    options.target = {.dialect = Dialect::kOpenCl,
                      .max_threads_per_block = 4096,
                      .compute_units = 2,
                      .warp_size = arguments.warp_size,
                      .vector_bytes = 32,
                      .cache_bytes = int64_t{32} * 1024 * 1024};
  }
  return options;
}

absl::StatusOr<EngineProgram> MakeProgram(const Graph& graph, const Arguments& arguments) {
  const EngineOptions options = OptionsFor(arguments);
  MTMC_ASSIGN_OR_RETURN(EngineProgram program, CreateProgram(graph, options));
  if (!arguments.schedule_path.empty()) {
    MTMC_ASSIGN_OR_RETURN(const std::string schedule, base::ReadFile(arguments.schedule_path));
    MTMC_ASSIGN_OR_RETURN(program, ApplyAction(graph, schedule, "stop", options));
  }
  for (const std::string& action : arguments.actions) {
    MTMC_ASSIGN_OR_RETURN(program, ApplyAction(graph, program.schedule, action, options));
  }
  return program;
}

absl::Status Print(const Arguments& arguments) {
  MTMC_ASSIGN_OR_RETURN(const Graph graph, ReadGraph(arguments.graph_path));
  MTMC_ASSIGN_OR_RETURN(const EngineProgram program, MakeProgram(graph, arguments));
  std::cout << program.text;
  return absl::OkStatus();
}

absl::Status PrintActions(const Arguments& arguments) {
  MTMC_ASSIGN_OR_RETURN(const Graph graph, ReadGraph(arguments.graph_path));
  MTMC_ASSIGN_OR_RETURN(const EngineProgram program, MakeProgram(graph, arguments));
  MTMC_ASSIGN_OR_RETURN(const std::vector<EngineAction> actions,
                        ListActions(graph, program.schedule, OptionsFor(arguments)));
  std::cout << program.schedule << "\n";
  for (const EngineAction& action : actions) std::cout << action.text << "\n";
  return absl::OkStatus();
}

// The first thing that a worker would say against the program.
absl::Status CheckText(const Graph& graph, const std::string& text, const EmitTarget& target) {
  const ParseResult parsed = ParseProgram(text);
  if (!parsed.program) return absl::InvalidArgumentError(ToText(parsed.diagnostics));
  CheckLimits limits{.max_threads_per_block = target.max_threads_per_block,
                     .max_shared_bytes = target.shared_bytes_per_block};
  for (const Operator& row : Operators()) {
    if (row.is_callable()) limits.allowed_calls.emplace(row.name);
  }
  const std::vector<Diagnostic> diagnostics =
      CheckProgram(*parsed.program, FromGraph(graph), limits, DefaultBindings(*parsed.program));
  return diagnostics.empty() ? absl::OkStatus() : absl::InvalidArgumentError(ToText(diagnostics));
}

absl::Status Check(const Arguments& arguments) {
  MTMC_ASSIGN_OR_RETURN(const Graph graph, ReadGraph(arguments.graph_path));
  MTMC_ASSIGN_OR_RETURN(const EngineProgram program, MakeProgram(graph, arguments));
  return CheckText(graph, program.text, OptionsFor(arguments).target);
}

absl::Status PrintOperators() {
  std::cout << OperatorDocument();
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app{"Prints what the built-in engine makes of a traced graph."};
  Arguments arguments;
  CLI::App* print = app.add_subcommand("print", "Print the program.");
  CLI::App* actions = app.add_subcommand("actions", "Print the schedule and its legal actions.");
  CLI::App* check = app.add_subcommand("check", "Say whether a worker would take the program.");
  CLI::App* operators = app.add_subcommand("operators", "Print what computes each operator.");
  for (CLI::App* command : {print, actions, check}) {
    command->add_option("graph", arguments.graph_path, "Graph as JSON (mtmc.v1.Graph).")
        ->required();
    command->add_option("--dialect", arguments.dialect, "cuda or opencl (default opencl).");
    command->add_option("--apply", arguments.actions,
                        "Text of an action to apply; may be repeated.");
    command->add_option("--schedule", arguments.schedule_path,
                        "File with the schedule to begin with.");
    command
        ->add_option("--warp-size", arguments.warp_size,
                     "Threads of an OpenCL device that go together; 1 (default) is a CPU.")
        ->check(CLI::Range(1, 64));
    command->add_flag("--tf32", arguments.allow_tf32, "Offer TF32 library calls.");
  }
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = *print       ? Print(arguments)
                              : *check     ? Check(arguments)
                              : *operators ? PrintOperators()
                                           : PrintActions(arguments);
  if (status.ok()) return 0;
  std::cerr << "mtmc-engine: " << status << "\n";
  return 1;
}

}  // namespace
}  // namespace mtmc::kernel

// NOLINTNEXTLINE(bugprone-exception-escape): only where the JSON library is out of memory.
int main(int argc, char** argv) { return mtmc::kernel::Main(argc, argv); }

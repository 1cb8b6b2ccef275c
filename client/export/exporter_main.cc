// SPDX-License-Identifier: Apache-2.0
// mtmc-exporter: writes the exported file of a program and its traced graph, without a service.
//
//   mtmc-exporter GRAPH.json PROGRAM PROBLEM.py --out FILE.py
#include <google/protobuf/util/json_util.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "client/export/exporter.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "mtmc/v1/graph.pb.h"

namespace mtmc::client {
namespace {

struct Arguments {
  std::string graph_path;
  std::string program_path;
  std::string problem_path;
  std::string out_path;
};

absl::Status Export(const Arguments& arguments) {
  MTMC_ASSIGN_OR_RETURN(const std::string json, base::ReadFile(arguments.graph_path));
  v1::Graph graph;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json, &graph);
  if (!parsed.ok()) return absl::InvalidArgumentError(parsed.ToString());
  ExportInput input{.graph = &graph, .provenance = "written by mtmc-exporter"};
  MTMC_ASSIGN_OR_RETURN(input.problem_source, base::ReadFile(arguments.problem_path));
  MTMC_ASSIGN_OR_RETURN(input.program, base::ReadFile(arguments.program_path));
  MTMC_ASSIGN_OR_RETURN(const std::string text, ExportPython(input));
  return base::WriteFileAtomically(arguments.out_path, text);
}

}  // namespace
}  // namespace mtmc::client

int main(int argc, char** argv) {
  CLI::App app("Writes the exported file of a program and its traced graph");
  mtmc::client::Arguments arguments;
  app.add_option("graph", arguments.graph_path, "mtmc.v1.Graph as JSON, of mtmc_reference.graph_of")
      ->required();
  app.add_option("program", arguments.program_path, "text of the program")->required();
  app.add_option("problem", arguments.problem_path, "the user's Python file")->required();
  app.add_option("--out", arguments.out_path, "file to write")->required();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = mtmc::client::Export(arguments);
  if (status.ok()) return 0;
  std::cerr << status.message() << "\n";
  return 1;
}

// SPDX-License-Identifier: Apache-2.0

// Any wire or text bytes may be a graph; what converts is lowered, scheduled and
// printed for both dialects, and changed by an action. Every step gives a program
// or an error; so does the schedule with some of its words changed, and what is
// printed of it passes the checks that the graph's first program passes.

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>

#include "kernel/engine/engine.h"
#include "kernel/engine/testing/graph_mutator.h"
#include "kernel/engine/testing/schedule_mutator.h"
#include "kernel/graph/graph_proto.h"
#include "kernel/program/checker.h"
#include "kernel/program/interface.h"
#include "kernel/program/parser.h"
#include "kernel/rewrite/rewrite.h"
#include "kernel/schedule/schedule.h"
#include "mtmc/v1/graph.pb.h"

namespace {

using namespace mtmc;

// Larger graphs repeat what smaller ones do, and actions are quadratic in nodes.
constexpr int kMaxNodes = 12;

// Text format reports every syntax error to the log unless someone collects it.
class SilentCollector : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

bool ParseGraph(const std::string& bytes, v1::Graph& graph) {
  static auto* const logged = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(logged);
  SilentCollector collector;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  return graph.ParseFromString(bytes) || parser.ParseFromString(bytes, &graph);
}

kernel::EngineOptions OptionsFor(kernel::Dialect dialect) {
  if (dialect == kernel::Dialect::kOpenCl) {
    return {.target = {.dialect = dialect, .max_threads_per_block = 4096, .warp_size = 1}};
  }
  return {.target = {.dialect = dialect, .shared_bytes_per_block = int64_t{227} * 1024},
          .allow_tf32 = true};
}

// What the program format and the device forbid; empty for a program that may run.
std::string FaultsOf(const kernel::Graph& graph, const std::string& text,
                     const kernel::EngineOptions& options) {
  const kernel::ParseResult parsed = kernel::ParseProgram(text);
  if (!parsed.program.has_value()) return kernel::ToText(parsed.diagnostics);
  kernel::CheckLimits limits{.max_threads_per_block = options.target.max_threads_per_block,
                             .max_shared_bytes = options.target.shared_bytes_per_block};
  for (const kernel::GraphNode& node : graph.nodes) {
    limits.allowed_calls.insert(node.op.substr(0, node.op.find('.')));
  }
  limits.allowed_calls.insert({"aten::linear", "aten::bmm", "aten::conv1d", "aten::conv2d",
                               "aten::conv3d", "aten::convolution"});
  std::string faults;
  for (const kernel::Bindings& bindings : kernel::Variants(*parsed.program, /*limit=*/64)) {
    faults += kernel::ToText(
        kernel::CheckProgram(*parsed.program, kernel::FromGraph(graph), limits, bindings));
  }
  return faults;
}

// The graph that a schedule is for: algebra may leave less of it to be read.
kernel::Graph RewrittenBy(const std::string& schedule, const kernel::Graph& graph) {
  const auto parsed = kernel::ParseSchedule(schedule);
  if (!parsed.ok()) std::abort();
  auto rewritten = kernel::ApplyRewrites(graph, parsed->rewrites);
  if (!rewritten.ok()) std::abort();
  return *std::move(rewritten);
}

void ChangeSchedule(const kernel::Graph& graph, const std::string& schedule,
                    const kernel::EngineOptions& options, std::mt19937& random) {
  const std::string changed = kernel::MutateSchedule(schedule, random);
  const auto printed = kernel::ApplyAction(graph, changed, "stop", options);
  if (!printed.ok()) return;
  const std::string faults =
      FaultsOf(RewrittenBy(printed->schedule, graph), printed->text, options);
  if (faults.empty()) return;
  std::fprintf(stderr, "an accepted schedule prints a program that may not run:\n%s%s%s",
               changed.c_str(), faults.c_str(), printed->text.c_str());
  std::abort();
}

void Change(const kernel::Graph& graph, const kernel::EngineOptions& options, std::mt19937 random) {
  const auto program = kernel::CreateProgram(graph, options);
  if (!program.ok()) return;
  const auto actions = kernel::ListActions(graph, program->schedule, options);
  if (!actions.ok() || actions->empty()) return;
  const kernel::EngineAction& action = (*actions)[random() % actions->size()];
  const auto next = kernel::ApplyAction(graph, program->schedule, action.text, options);
  if (!next.ok() || !FaultsOf(graph, program->text, options).empty()) return;
  for (int i = 0; i < 4; ++i) ChangeSchedule(graph, next->schedule, options, random);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  v1::Graph proto;
  if (!ParseGraph({reinterpret_cast<const char*>(data), size}, proto)) return 0;
  if (proto.nodes_size() > kMaxNodes) return 0;
  const auto graph = kernel::FromProto(proto);
  if (!graph.ok()) return 0;
  const std::mt19937 random(static_cast<std::uint32_t>(size));
  for (const auto dialect : {kernel::Dialect::kCuda, kernel::Dialect::kOpenCl}) {
    Change(*graph, OptionsFor(dialect), random);
  }
  return 0;
}

// libFuzzer's own byte mutations leave few messages that are graphs.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  v1::Graph graph;
  if (!ParseGraph({reinterpret_cast<const char*>(data), size}, graph)) graph.Clear();
  std::mt19937 random(seed);
  for (unsigned i = 0; i <= random() % 3; ++i) kernel::MutateGraph(graph, random);
  const std::string bytes = graph.SerializeAsString();
  if (bytes.size() > max_size) return size;
  bytes.copy(reinterpret_cast<char*>(data), bytes.size());
  return bytes.size();
}

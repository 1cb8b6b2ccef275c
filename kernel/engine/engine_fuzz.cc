// SPDX-License-Identifier: Apache-2.0

// Any wire or text bytes may be a graph; what converts is lowered, scheduled and
// printed for both dialects, and changed by an action. Every step gives a program
// or an error.

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "kernel/engine/engine.h"
#include "kernel/engine/testing/graph_mutator.h"
#include "kernel/graph/graph_proto.h"
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
  return {.target = {.dialect = dialect, .shared_bytes_per_block = 227 * 1024}, .allow_tf32 = true};
}

void Change(const kernel::Graph& graph, const kernel::EngineOptions& options, std::mt19937 random) {
  const auto program = kernel::CreateProgram(graph, options);
  if (!program.ok()) return;
  const auto actions = kernel::ListActions(graph, program->schedule, options);
  if (!actions.ok() || actions->empty()) return;
  const kernel::EngineAction& action = (*actions)[random() % actions->size()];
  static_cast<void>(kernel::ApplyAction(graph, program->schedule, action.text, options));
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

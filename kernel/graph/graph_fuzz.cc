// SPDX-License-Identifier: Apache-2.0

// Any wire or text bytes may be converted; what converts is listed and
// converts back to itself.

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "kernel/graph/graph_proto.h"
#include "kernel/graph/listing.h"
#include "mtmc/v1/graph.pb.h"

namespace {

// Text format reports every syntax error to the log unless someone collects it.
class SilentCollector : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mtmc;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  static auto* const logged = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(logged);
  v1::Graph proto;
  SilentCollector collector;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  // Text is seldom wire bytes, and is told from them faster than the contrary.
  if (!proto.ParseFromString(bytes) && !parser.ParseFromString(bytes, &proto)) return 0;
  const auto graph = kernel::FromProto(proto);
  if (!graph.ok()) return 0;
  kernel::ListGraph(*graph);
  if (!kernel::FromProto(kernel::ToProto(*graph)).ok()) std::abort();
  return 0;
}

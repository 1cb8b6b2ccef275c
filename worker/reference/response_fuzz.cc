// SPDX-License-Identifier: Apache-2.0

// The reference process runs the user's code and may print any line. A response
// that is read can be printed and read again, and its graph is checked before
// anything else looks at it.

#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "google/protobuf/util/json_util.h"
#include "kernel/graph/graph_proto.h"
#include "kernel/graph/listing.h"
#include "worker/reference/response_line.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mtmc;
  static auto* const logged = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(logged);
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto response = worker::ParseResponseLine(line, /*sequence=*/1);
  if (!response.ok()) return 0;
  std::string printed;
  if (!google::protobuf::util::MessageToJsonString(*response, &printed).ok()) return 0;
  if (!worker::ParseResponseLine(printed, /*sequence=*/1).ok()) std::abort();
  if (!response->has_loaded()) return 0;
  const auto graph = kernel::FromProto(response->loaded().inspection().graph());
  if (graph.ok()) kernel::ListGraph(*graph);
  return 0;
}

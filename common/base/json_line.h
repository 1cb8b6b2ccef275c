// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/base/trace_context.h"

namespace mtmc::base {

// What one line of a log says. Borrows all; a value.
struct LogRecord {
  absl::Time time;
  LogLevel level = LogLevel::kInfo;
  // Name of the program.
  std::string_view component;
  std::string_view message;
  std::initializer_list<LogField> fields;
  // Path of the source file as the compiler was given it.
  std::string_view file;
  int line = 0;
  // Not valid where the line belongs to no trace.
  TraceContext trace = {};
};

// `record` as one JSON object without a line break:
//
//   {"time":"2026-11-25T10:05:52.123Z","severity":"INFO","message":"lease taken",
//    "component":"mtmc-worker","source":"worker/daemon/lease_loop.cc:164",
//    "trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331",
//    "job":"projects/default/jobs/1"}
//
// `trace_id` and `span_id` are there while a span is current (common/trace/span.h).
// Values of fields are strings; a field whose name is taken is called `field_NAME`. Bytes
// that are not UTF-8 become U+FFFD.
std::string JsonLine(const LogRecord& record);

}  // namespace mtmc::base

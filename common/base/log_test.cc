// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/base/json_line.h"

namespace mtmc::base {
namespace {

LogRecord Record(std::initializer_list<LogField> fields, const TraceContext& trace = {}) {
  return {.time = absl::FromUnixMillis(1'764'065'152'123),
          .level = LogLevel::kWarning,
          .component = "mtmc-nothing",
          .message = "it is so",
          .fields = fields,
          .file = "/somewhere/common/base/log_test.cc",
          .line = 7,
          .trace = trace};
}

constexpr char kStart[] =
    R"({"time":"2025-11-25T10:05:52.123Z","severity":"WARNING","message":"it is so",)"
    R"("component":"mtmc-nothing","source":"common/base/log_test.cc:7")";

TEST_CASE("A JSON line says what, who, where and when", "[log]") {
  CHECK(JsonLine(Record({{"job", "j"}, {"count", 3}})) ==
        std::string(kStart) + R"(,"job":"j","count":"3"})");
}

TEST_CASE("Any bytes make one line of JSON", "[log]") {
  CHECK(JsonLine(Record({{"text", "a\"\n\x01\xff"}})) ==
        std::string(kStart) + ",\"text\":\"a\\\"\\n\\u0001\xEF\xBF\xBD\"}");
}

TEST_CASE("A field does not take the place of what every line has", "[log]") {
  CHECK(JsonLine(Record({{"time", "now"}, {"time", "then"}})) ==
        std::string(kStart) + R"(,"field_time":"now","field_field_time":"then"})");
}

TEST_CASE("A JSON line names the span that it belongs to", "[log]") {
  const TraceContext trace =
      *ParseTraceParent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");

  CHECK(JsonLine(Record({{"span_id", "mine"}}, trace)) ==
        std::string(kStart) +
            R"(,"trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331",)"
            R"("field_span_id":"mine"})");
}

TEST_CASE("A log format is text or json", "[log]") {
  CHECK(ParseLogFormat("text").value_or(LogFormat::kJson) == LogFormat::kText);
  CHECK(ParseLogFormat("json").value_or(LogFormat::kText) == LogFormat::kJson);
  CHECK_FALSE(ParseLogFormat("xml").ok());
}

}  // namespace
}  // namespace mtmc::base

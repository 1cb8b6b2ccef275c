// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_line.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"

namespace mtmc::base {
namespace {

const char* SeverityOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "DEBUG";
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kWarning:
      return "WARNING";
    case LogLevel::kError:
      return "ERROR";
  }
  return "INFO";
}

// From the repository's root: sources lie in folders of folders. Where the build lies is
// of no interest.
std::string_view WithoutRoot(std::string_view file) {
  size_t start = file.size();
  for (int parts = 0; parts < 3 && start != file.npos && start > 0; ++parts) {
    start = file.rfind('/', start - 1);
  }
  return start == file.npos || start >= file.size() ? file : file.substr(start + 1);
}

}  // namespace

std::string JsonLine(const LogRecord& record) {
  nlohmann::ordered_json line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", record.time, absl::UTCTimeZone());
  line["severity"] = SeverityOf(record.level);
  line["message"] = record.message;
  line["component"] = record.component;
  line["source"] = absl::StrCat(ToAbsl(WithoutRoot(record.file)), ":", record.line);
  if (record.trace.is_valid()) {
    line["trace_id"] = record.trace.trace_id_hex();
    line["span_id"] = record.trace.span_id_hex();
  }
  for (const LogField& field : record.fields) {
    std::string key(field.key);
    while (line.contains(key)) key.insert(0, "field_");
    line[key] = field.value;
  }
  return line.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace mtmc::base

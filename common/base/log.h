// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace mtmc::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Text for people, or one JSON object a line (json_line.h) for log collectors.
enum class LogFormat { kText, kJson };

// One `key=value` of a log line; strings, numbers and booleans convert.
// Never pass a secret: nothing redacts it.
struct LogField {
  template <typename T>

  requires std::is_arithmetic_v<T> LogField(std::string_view key_in, T value_in)
      : key(key_in), value(absl::StrCat(value_in)) {}

  LogField(std::string_view key_in, bool value_in)
      : key(key_in), value(value_in ? "true" : "false") {}

  LogField(std::string_view key_in, std::string_view value_in) : key(key_in), value(value_in) {}

  LogField(std::string_view key_in, const char* value_in) : key(key_in), value(value_in) {}

  LogField(std::string_view key_in, const std::string& value_in) : key(key_in), value(value_in) {}

  LogField(std::string_view key_in, const absl::Status& value_in)
      : key(key_in), value(value_in.ToString()) {}

  std::string_view key;
  std::string value;
};

struct LoggingOptions {
  // Name of the program, on every line.
  std::string program;
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
};

// Sends logs to standard error in the given form; without it, Log() writes text
// at level kInfo. Call once, at the start of main.
void InitLogging(const LoggingOptions& options);

// "debug", "info", "warning" or "error".
absl::StatusOr<LogLevel> ParseLogLevel(std::string_view name);

// "text" or "json".
absl::StatusOr<LogFormat> ParseLogFormat(std::string_view name);

// Writes one line. `message` is constant text, lower case, no full stop; what
// varies goes into the fields: Log(LogLevel::kInfo, "lease taken", {{"job", id}}).
// Thread-safe; blocks while standard error blocks. `file` and `line` are the caller's.
void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {},
         const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace mtmc::base

// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/json_line.h"
#include "common/base/string_view.h"

namespace mtmc::base {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// `text` without what would end a quoted value or its line.
std::string Escape(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '"':
        escaped += "\\\"";
        break;
      case '\\':
        escaped += "\\\\";
        break;
      case '\n':
        escaped += "\\n";
        break;
      case '\t':
        escaped += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          escaped += absl::StrFormat("\\u%04x", static_cast<unsigned char>(c));
        } else {
          escaped.push_back(c);
        }
    }
  }
  return escaped;
}

// Values with a space, quote or control character are quoted, so that a line
// stays one line and parses.
std::string QuoteText(std::string_view value) {
  const bool is_plain = !value.empty() && value.find_first_of(" \"\\\n\t=") == value.npos;
  return is_plain ? std::string(value) : absl::StrCat("\"", Escape(value), "\"");
}

struct Logger {
  std::shared_ptr<spdlog::logger> spdlog;
  std::string program = "mtmc";
  LogFormat format = LogFormat::kText;
};

void SetForm(Logger& logger, LogLevel level) {
  logger.spdlog->set_level(ToSpdlog(level));
  logger.spdlog->flush_on(spdlog::level::debug);
  // Text is "I 10:05:52.123 program] message".
  logger.spdlog->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      logger.format == LogFormat::kJson ? "%v" : "%L %H:%M:%S.%e " + logger.program + "] %v",
      spdlog::pattern_time_type::utc));
}

// Leaked, so that threads may log while the process exits.
Logger& TheLogger() {
  static Logger& logger = *[] {
    auto* made = new Logger;
    made->spdlog =
        std::make_shared<spdlog::logger>("mtmc", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    SetForm(*made, LogLevel::kInfo);
    return made;
  }();
  return logger;
}

}  // namespace

void InitLogging(const LoggingOptions& options) {
  Logger& logger = TheLogger();
  if (!options.program.empty()) logger.program = options.program;
  logger.format = options.format;
  SetForm(logger, options.level);
}

absl::StatusOr<LogLevel> ParseLogLevel(std::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return absl::InvalidArgumentError(
      absl::StrCat("log level is \"", ToAbsl(name), "\", must be debug, info, warning or error"));
}

absl::StatusOr<LogFormat> ParseLogFormat(std::string_view name) {
  if (name == "text") return LogFormat::kText;
  if (name == "json") return LogFormat::kJson;
  return absl::InvalidArgumentError(
      absl::StrCat("log format is \"", ToAbsl(name), "\", must be text or json"));
}

void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields,
         const char* file, int line) {
  Logger& logger = TheLogger();
  if (!logger.spdlog->should_log(ToSpdlog(level))) return;
  std::string text;
  if (logger.format == LogFormat::kJson) {
    text = JsonLine({.time = absl::Now(),
                     .level = level,
                     .component = logger.program,
                     .message = message,
                     .fields = fields,
                     .file = file,
                     .line = line,
                     .trace = CurrentTrace()});
  } else {
    text = message;
    for (const LogField& field : fields) {
      absl::StrAppend(&text, " ", ToAbsl(field.key), "=", QuoteText(field.value));
    }
  }
  // spdlog takes a string view as text, not as a format.
  logger.spdlog->log(ToSpdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace mtmc::base

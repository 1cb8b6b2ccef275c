// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>

#include "absl/strings/str_format.h"
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

// `text` as the inside of a JSON string.
std::string EscapeJson(std::string_view text) {
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
  return is_plain ? std::string(value) : absl::StrCat("\"", EscapeJson(value), "\"");
}

struct Logger {
  std::shared_ptr<spdlog::logger> spdlog;
  std::string program = "mtmc";
  bool json = false;
};

void SetForm(Logger& logger, LogLevel level) {
  logger.spdlog->set_level(ToSpdlog(level));
  logger.spdlog->flush_on(spdlog::level::debug);
  // The sink adds time and level; text form "I 10:05:52.123 program] message".
  const std::string name = EscapeJson(logger.program);
  logger.spdlog->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      logger.json ? "{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",\"level\":\"%l\",\"program\":\"" + name +
                        "\",\"thread\":%t,%v}"
                  : "%L %H:%M:%S.%e " + name + "] %v",
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
  logger.json = options.json;
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

void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  Logger& logger = TheLogger();
  if (!logger.spdlog->should_log(ToSpdlog(level))) return;
  std::string line = logger.json ? absl::StrCat("\"message\":\"", EscapeJson(message), "\"")
                                 : std::string(message);
  for (const LogField& field : fields) {
    if (logger.json) {
      absl::StrAppend(&line, ",\"", EscapeJson(field.key), "\":\"", EscapeJson(field.value), "\"");
    } else {
      absl::StrAppend(&line, " ", ToAbsl(field.key), "=", QuoteText(field.value));
    }
  }
  // spdlog takes a string view as text, not as a format.
  logger.spdlog->log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace mtmc::base

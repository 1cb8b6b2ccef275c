// SPDX-License-Identifier: Apache-2.0
#include "common/rest/path_template.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"

namespace mtmc::rest {
namespace {

absl::Status NoTemplate(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", base::ToAbsl(text), "\" is no path template"));
}

std::vector<std::string> Split(std::string_view path) {
  return absl::StrSplit(base::ToAbsl(path), '/');
}

}  // namespace

absl::StatusOr<std::string> Unescape(std::string_view text, bool is_query) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && is_query) {
      result += ' ';
    } else if (text[i] != '%') {
      result += text[i];
    } else {
      const std::string_view digits = text.substr(i + 1, 2);
      const bool is_escape = digits.size() == 2 &&
                             absl::ascii_isxdigit(static_cast<unsigned char>(digits[0])) &&
                             absl::ascii_isxdigit(static_cast<unsigned char>(digits[1]));
      if (!is_escape) return absl::InvalidArgumentError("a % must be followed by two digits");
      result += absl::HexStringToBytes(base::ToAbsl(digits));
      i += 2;
    }
  }
  return result;
}

absl::StatusOr<PathTemplate> PathTemplate::Parse(std::string_view text) {
  PathTemplate result;
  if (text.empty() || text.front() != '/') return NoTemplate(text);
  std::string_view rest = text.substr(1);
  // A colon within braces cannot be: names of fields and literals have none.
  if (const std::size_t colon = rest.rfind(':'); colon != rest.npos) {
    result.verb_ = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (result.verb_.empty()) return NoTemplate(text);
  }
  while (!rest.empty()) {
    std::string_view part;
    if (rest.front() == '{') {
      const std::size_t close = rest.find('}');
      if (close == rest.npos) return NoTemplate(text);
      part = rest.substr(1, close - 1);
      rest = rest.substr(close + 1);
      const std::size_t equals = part.find('=');
      Variable variable{.field = std::string(part.substr(0, equals)),
                        .begin = result.segments_.size()};
      if (variable.field.empty()) return NoTemplate(text);
      part = equals == part.npos ? "*" : part.substr(equals + 1);
      for (const std::string& segment : Split(part)) result.segments_.push_back(segment);
      variable.end = result.segments_.size();
      result.variables_.push_back(std::move(variable));
    } else {
      const std::size_t slash = rest.find('/');
      part = rest.substr(0, slash);
      rest = slash == rest.npos ? std::string_view() : rest.substr(slash);
      result.segments_.emplace_back(part);
    }
    if (rest.empty()) break;
    if (rest.front() != '/' || rest.size() == 1) return NoTemplate(text);
    rest.remove_prefix(1);
  }
  for (const std::string& segment : result.segments_) {
    const bool is_plain = segment == "*" || segment.find_first_of("*{}=") == segment.npos;
    if (segment.empty() || !is_plain) return NoTemplate(text);
  }
  if (result.segments_.empty()) return NoTemplate(text);
  return result;
}

std::optional<PathTemplate::Bindings> PathTemplate::Match(std::string_view path) const {
  if (path.empty() || path.front() != '/') return std::nullopt;
  path.remove_prefix(1);
  const std::size_t colon = path.rfind(':');
  const bool has_verb = colon != path.npos && path.find('/', colon) == path.npos;
  if (has_verb != !verb_.empty()) return std::nullopt;
  if (has_verb) {
    if (path.substr(colon + 1) != verb_) return std::nullopt;
    path = path.substr(0, colon);
  }
  std::vector<std::string> parts = Split(path);
  if (parts.size() != segments_.size()) return std::nullopt;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto plain = Unescape(parts[i], /*is_query=*/false);
    if (!plain.ok() || plain->empty()) return std::nullopt;
    if (segments_[i] != "*" && segments_[i] != *plain) return std::nullopt;
    parts[i] = *plain;
  }
  Bindings bindings;
  for (const Variable& variable : variables_) {
    bindings.emplace_back(
        variable.field,
        absl::StrJoin(parts.begin() + static_cast<std::ptrdiff_t>(variable.begin),
                      parts.begin() + static_cast<std::ptrdiff_t>(variable.end), "/"));
  }
  return bindings;
}

}  // namespace mtmc::rest

// SPDX-License-Identifier: Apache-2.0
#include "client/cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "google/protobuf/util/json_util.h"

namespace mtmc::client {
namespace {

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

std::string Styled(absl::string_view code, const std::string& text) {
  static const bool is_interactive = IsInteractive();
  return is_interactive ? absl::StrCat("\033[", code, "m", text, "\033[0m") : text;
}

// Characters a terminal shows: escape sequences and UTF-8 continuation bytes
// take no room.
size_t Width(std::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++width;
    }
  }
  return width;
}

}  // namespace

bool IsInteractive() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && !IsSet("NO_COLOR") && !IsSet("CI") &&
         !(term != nullptr && std::string_view(term) == "dumb");
}

Table::Table(std::vector<std::string> headers) : headers_(std::move(headers)) {}

void Table::AddRow(std::vector<std::string> cells) {
  MTMC_CHECK(cells.size() == headers_.size());
  rows_.push_back(std::move(cells));
}

void Table::Print(std::ostream& out) const {
  std::vector<std::string> titles = headers_;
  std::vector<bool> is_right(headers_.size());
  std::vector<size_t> widths(headers_.size());
  for (size_t i = 0; i < headers_.size(); ++i) {
    is_right[i] = headers_[i].starts_with('>');
    if (is_right[i]) titles[i].erase(0, 1);
    widths[i] = Width(titles[i]);
    for (const auto& row : rows_) widths[i] = std::max(widths[i], Width(row[i]));
  }
  const auto print = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - Width(cells[i]), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ", is_right[i] ? padding : "", cells[i],
                      is_right[i] ? "" : padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  };
  print(titles);
  for (const auto& row : rows_) print(row);
}

void PrintJson(const google::protobuf::Message& message, std::ostream& out) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  MTMC_CHECK(google::protobuf::util::MessageToJsonString(message, &text, options).ok());
  out << text;
}

std::string FormatSeconds(double seconds) {
  if (seconds >= 1) return absl::StrFormat("%.3g s", seconds);
  // %.3g would print 1.23e+02 for 123.4; these are the same digits written out.
  const auto digits = [](double value) {
    return value >= 100  ? absl::StrFormat("%.0f", value)
           : value >= 10 ? absl::StrFormat("%.1f", value)
                         : absl::StrFormat("%.2f", value);
  };
  if (seconds >= 1e-3) return digits(seconds * 1e3) + " ms";
  return digits(seconds * 1e6) + " us";
}

std::string FormatSpeedup(double speedup) { return absl::StrFormat("%.2fx", speedup); }

std::string FormatDollars(int64_t micros) {
  const double dollars = 1e-6 * static_cast<double>(micros);
  const int digits = micros >= 1'000'000 ? 2 : micros >= 1'000 ? 4 : 6;
  return absl::StrFormat("$%.*f", digits, dollars);
}

std::string Bold(const std::string& text) { return Styled("1", text); }

std::string Green(const std::string& text) { return Styled("32", text); }

std::string Red(const std::string& text) { return Styled("31", text); }

std::string Dim(const std::string& text) { return Styled("2", text); }

}  // namespace mtmc::client

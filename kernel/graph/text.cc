// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace mtmc::kernel {
namespace {

bool IsSpace(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }

}  // namespace

void TextPiece::Format(int64_t number) {
  const auto result = std::to_chars(std::begin(digits_), std::end(digits_), number);
  text_ = std::string_view(digits_, static_cast<size_t>(result.ptr - digits_));
}

void TextPiece::Format(uint64_t number) {
  const auto result = std::to_chars(std::begin(digits_), std::end(digits_), number);
  text_ = std::string_view(digits_, static_cast<size_t>(result.ptr - digits_));
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> SplitWords(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  while ((begin = text.find_first_not_of(" \t", begin)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(" \t", begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::optional<int64_t> FindInteger(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (text.empty() || result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

std::string RealText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char digits[32];
  const auto result = std::to_chars(std::begin(digits), std::end(digits), value);
  std::string text(std::begin(digits), result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string Quoted(std::string_view text) {
  constexpr size_t kMaxBytes = 80;
  const std::string_view shown = text.substr(0, kMaxBytes);
  return Concat('"', absl::CHexEscape({shown.data(), shown.size()}),
                text.size() > kMaxBytes ? "..." : "", '"');
}

}  // namespace mtmc::kernel

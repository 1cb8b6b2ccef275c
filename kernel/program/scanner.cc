// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/scanner.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// Follows brackets and quotes through a text, one byte at a time.
class NestingTracker {
 public:
  // Call with every byte in order. False when a bracket closes that none opened.
  bool Accept(char c) {
    if (quote_ != '\0') {
      if (is_escaped_) {
        is_escaped_ = false;
      } else if (c == '\\') {
        is_escaped_ = true;
      } else if (c == quote_) {
        quote_ = '\0';
      }
      return true;
    }
    switch (c) {
      case '"':
      case '\'':
        quote_ = c;
        break;
      case '(':
        open_.push_back(')');
        break;
      case '[':
        open_.push_back(']');
        break;
      case ')':
      case ']':
        if (open_.empty() || open_.back() != c) return false;
        open_.pop_back();
        break;
      default:
        break;
    }
    return true;
  }

  bool is_outside() const { return quote_ == '\0' && open_.empty(); }

 private:
  std::string open_;
  char quote_ = '\0';
  bool is_escaped_ = false;
};

absl::Status Unbalanced(std::string_view text) {
  return absl::InvalidArgumentError(Concat(Quoted(text), " has unbalanced brackets or quotes"));
}

// Length of the UTF-8 sequence at the front of `text`; 0 when it is malformed.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and points above U+10FFFF.
  const uint8_t second = byte(1);
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
      (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

}  // namespace

absl::StatusOr<std::vector<Field>> SplitFields(std::string_view text,
                                               const std::vector<std::string_view>& keys) {
  std::vector<Field> fields;
  NestingTracker nesting;
  bool is_after_blank = true;
  size_t value_begin = 0;
  const auto finish = [&](size_t end) {
    if (!fields.empty()) {
      fields.back().value = Trim(text.substr(value_begin, end - value_begin));
    }
  };
  for (size_t at = 0; at < text.size(); ++at) {
    if (is_after_blank && nesting.is_outside()) {
      for (const std::string_view key : keys) {
        if (text.substr(at, key.size()) != key || text.substr(at + key.size(), 1) != "=") continue;
        finish(at);
        fields.push_back({.key = key});
        at += key.size() + 1;
        value_begin = at;
        break;
      }
      if (at >= text.size()) break;
    }
    const char c = text[at];
    if (fields.empty() && !absl::ascii_isspace(static_cast<unsigned char>(c))) {
      return absl::InvalidArgumentError(Concat(Quoted(text.substr(at)),
                                               " is not understood; the fields here are `",
                                               keys.front(), "=` ..."));
    }
    if (!nesting.Accept(c)) return Unbalanced(text);
    is_after_blank = c == ' ' || c == '\t';
  }
  if (!nesting.is_outside()) return Unbalanced(text);
  finish(text.size());
  return fields;
}

absl::StatusOr<std::vector<std::string_view>> SplitTuple(std::string_view text) {
  text = Trim(text);
  if (text.empty()) return absl::InvalidArgumentError("a value is missing after `=`");
  if (text.front() == '(') {
    NestingTracker nesting;
    for (size_t at = 0; at < text.size(); ++at) {
      if (!nesting.Accept(text[at])) return Unbalanced(text);
      if (!nesting.is_outside()) continue;
      // The first parenthesis closes here: a tuple only if nothing follows.
      if (at + 1 == text.size()) return SplitList(text.substr(1, text.size() - 2));
      break;
    }
  }
  return std::vector<std::string_view>{text};
}

absl::StatusOr<std::vector<std::string_view>> SplitList(std::string_view text) {
  std::vector<std::string_view> elements;
  if (Trim(text).empty()) return elements;
  NestingTracker nesting;
  size_t begin = 0;
  const auto finish = [&](size_t end) {
    elements.push_back(Trim(text.substr(begin, end - begin)));
    begin = end + 1;
    return !elements.back().empty();
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const bool is_separator = text[at] == ',' && nesting.is_outside();
    if (is_separator && !finish(at)) {
      return absl::InvalidArgumentError(Concat(Quoted(text), " has an empty element"));
    }
    if (!nesting.Accept(text[at])) return Unbalanced(text);
  }
  if (!nesting.is_outside()) return Unbalanced(text);
  if (!finish(text.size())) {
    return absl::InvalidArgumentError(Concat(Quoted(text), " has an empty element"));
  }
  return elements;
}

std::optional<double> FindReal(std::string_view text) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (text == "inf") return infinity;
  if (text == "-inf") return -infinity;
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  // from_chars also reads names such as `infinity`; here only decimals do.
  const bool is_decimal = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.' || c == 'e' || c == 'E' ||
           c == '+' || c == '-';
  });
  const bool has_digit = std::any_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  const bool is_real = text.find_first_of(".eE") != std::string_view::npos;
  if (!is_decimal || !has_digit || !is_real) return std::nullopt;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace mtmc::kernel

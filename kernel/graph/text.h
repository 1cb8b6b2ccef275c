// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mtmc::kernel {

// Building and taking apart plain text over std::string_view, which Debian's
// Abseil cannot take (see common/base/string_view.h).

// One operand of Concat: text, a character, or an integer in decimal.
class TextPiece {
 public:
  // NOLINTBEGIN(google-explicit-constructor): made by calls of Concat.
  TextPiece(std::string_view text) : text_(text) {}

  TextPiece(const std::string& text) : text_(text) {}

  TextPiece(const char* text) : text_(text) {}

  TextPiece(std::integral auto number);

  // NOLINTEND(google-explicit-constructor)

  std::string_view text() const { return text_; }

 private:
  void Format(int64_t number);
  void Format(uint64_t number);

  std::string_view text_;
  char digits_[24];

 public:
  // Immovable: text_ may point to digits_.
  TextPiece(const TextPiece&) = delete;
  TextPiece& operator=(const TextPiece&) = delete;
};

// Appends every piece to `out`.
template <typename... Pieces>
void Append(std::string& out, const Pieces&... pieces) {
  (out.append(TextPiece(pieces).text()), ...);
}

template <typename... Pieces>
std::string Concat(const Pieces&... pieces) {
  std::string out;
  Append(out, pieces...);
  return out;
}

// Elements of `range` as `format(element)` gives them, with `separator` between.
template <typename Range, typename Format>
std::string Join(const Range& range, std::string_view separator, Format format) {
  std::string out;
  bool is_first = true;
  for (const auto& element : range) {
    if (!is_first) out.append(separator);
    is_first = false;
    Append(out, format(element));
  }
  return out;
}

template <typename Range>
std::string Join(const Range& range, std::string_view separator) {
  return Join(
      range, separator, [](const auto& element) -> const auto& { return element; });
}

// Without ASCII white space at both ends.
std::string_view Trim(std::string_view text);

// The parts between separators; always at least one.
std::vector<std::string_view> Split(std::string_view text, char separator);

// The non-empty parts between blanks and tabs.
std::vector<std::string_view> SplitWords(std::string_view text);

// A decimal integer with an optional `-` and nothing else.
std::optional<int64_t> FindInteger(std::string_view text);

// Shortest decimal that reads back as `value` and never as an integer: `1.0`,
// `1e-05`, `-inf`, `nan`.
std::string RealText(double value);

// `"text"` with bytes that are not printable ASCII escaped, cut after 80 bytes;
// for messages that quote outside text.
std::string Quoted(std::string_view text);

TextPiece::TextPiece(std::integral auto number) {
  if constexpr (std::is_same_v<decltype(number), char>) {
    digits_[0] = number;
    text_ = std::string_view(digits_, 1);
  } else if constexpr (std::is_signed_v<decltype(number)>) {
    Format(static_cast<int64_t>(number));
  } else {
    Format(static_cast<uint64_t>(number));
  }
}

}  // namespace mtmc::kernel

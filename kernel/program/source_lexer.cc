// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/source_lexer.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"

namespace mtmc::kernel {
namespace {

bool IsWordByte(char c) { return c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c)); }

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

class Lexer {
 public:
  Lexer(std::string_view source, Dialect dialect)
      : source_(source), is_cpp_(dialect == Dialect::kCuda) {}

  std::vector<SourceToken> Run() {
    while (at_ < source_.size()) Step();
    return std::move(tokens_);
  }

 private:
  void Step() {
    const char c = source_[at_];
    if (c == '\n') {
      is_line_start_ = true;
      Advance(1);
    } else if (SpliceLength() > 0) {
      Advance(SpliceLength());
    } else if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
      Advance(1);
    } else if (StartsWith("//")) {
      SkipLine();
    } else if (StartsWith("/*")) {
      const size_t end = source_.find("*/", at_ + 2);
      AdvanceTo(end == std::string_view::npos ? end : end + 2);
    } else if (c == '#' && is_line_start_) {
      SkipDirective();
    } else {
      is_line_start_ = false;
      Token(c);
    }
  }

  void Token(char c) {
    using Kind = SourceToken::Kind;
    if (const size_t prefix = RawPrefixLength(); prefix > 0) {
      RawString(prefix);
    } else if (c == '"' || c == '\'') {
      Add(Kind::kString, QuotedLength(c));
    } else if (IsDigit(c)) {
      Add(Kind::kNumber, NumberLength());
    } else if (IsWordByte(c)) {
      size_t length = 1;
      while (at_ + length < source_.size() && IsWordByte(source_[at_ + length])) ++length;
      Add(Kind::kWord, length);
    } else {
      Add(Kind::kPunctuation, StartsWith("::") ? 2 : 1);
    }
  }

  // Takes `1e` of `1e-5f`, and `0x1fULL` and `1'000` whole.
  size_t NumberLength() const {
    size_t length = 1;
    while (at_ + length < source_.size()) {
      const char c = source_[at_ + length];
      const bool is_separator = is_cpp_ && c == '\'' && at_ + length + 1 < source_.size() &&
                                IsWordByte(source_[at_ + length + 1]);
      if (!IsWordByte(c) && c != '.' && !is_separator) break;
      ++length;
    }
    return length;
  }

  // Bytes up to the quote of a raw string that begins here; 0 when none does.
  size_t RawPrefixLength() const {
    if (!is_cpp_) return 0;
    for (const std::string_view prefix : {"R\"", "LR\"", "uR\"", "UR\"", "u8R\""}) {
      if (StartsWith(prefix)) return prefix.size() - 1;
    }
    return 0;
  }

  // `R"tag( ... )tag"`; `prefix` bytes stand before the first quote.
  void RawString(size_t prefix) {
    const size_t begin = at_ + prefix + 1;
    // The standard allows 16 bytes of tag.
    const std::string_view tag = source_.substr(begin, 17);
    const size_t length = tag.find('(');
    if (length == std::string_view::npos) {
      Add(SourceToken::Kind::kString, prefix + 1);
      return;
    }
    const size_t open = begin + length;
    const std::string closing = ")" + std::string(tag.substr(0, length)) + "\"";
    const size_t end = source_.find(closing, open);
    Add(SourceToken::Kind::kString,
        end == std::string_view::npos ? source_.size() - at_ : end + closing.size() - at_);
  }

  size_t QuotedLength(char quote) const {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote && source_[end] != '\n') {
      end += source_[end] == '\\' ? 2 : 1;
    }
    // An unterminated literal ends with its line.
    const bool is_closed = end < source_.size() && source_[end] == quote;
    return std::min(end + (is_closed ? 1 : 0), source_.size()) - at_;
  }

  // Up to the newline, which is left; a backslash before it continues the line.
  void SkipLine() {
    while (at_ < source_.size() && source_[at_] != '\n') {
      Advance(std::max<size_t>(SpliceLength(), 1));
    }
  }

  // Like SkipLine, but a block comment inside may hold newlines, and what looks
  // like one inside a string is none.
  void SkipDirective() {
    while (at_ < source_.size() && source_[at_] != '\n') {
      if (StartsWith("/*")) {
        const size_t end = source_.find("*/", at_ + 2);
        AdvanceTo(end == std::string_view::npos ? end : end + 2);
      } else if (StartsWith("//")) {
        SkipLine();
      } else if (source_[at_] == '"' || source_[at_] == '\'') {
        Advance(QuotedLength(source_[at_]));
      } else {
        Advance(std::max<size_t>(SpliceLength(), 1));
      }
    }
  }

  // 2 or 3 when a backslash-newline is here, else 0.
  size_t SpliceLength() const {
    if (StartsWith("\\\n")) return 2;
    return StartsWith("\\\r\n") ? 3 : 0;
  }

  bool StartsWith(std::string_view prefix) const {
    return source_.substr(at_, prefix.size()) == prefix;
  }

  void Add(SourceToken::Kind kind, size_t length) {
    tokens_.push_back({.kind = kind, .text = source_.substr(at_, length), .line = line_});
    Advance(length);
  }

  void Advance(size_t length) { AdvanceTo(at_ + length); }

  void AdvanceTo(size_t end) {
    end = std::min(end, source_.size());
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }

  const std::string_view source_;
  const bool is_cpp_;
  size_t at_ = 0;
  int line_ = 1;
  // Only blanks and comments so far on this line.
  bool is_line_start_ = true;
  std::vector<SourceToken> tokens_;
};

}  // namespace

std::vector<SourceToken> LexSource(std::string_view source, Dialect dialect) {
  return Lexer(source, dialect).Run();
}

}  // namespace mtmc::kernel

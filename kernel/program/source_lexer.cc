// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/source_lexer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"

namespace mtmc::kernel {
namespace {

bool IsWordByte(char c) { return c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c)); }

// Letters of a number that a sign may follow.
constexpr std::string_view kBeforeSign = "eEpP";

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// Index of what follows a backslash and the end of its line; `at` where none is.
size_t AfterSplice(std::string_view text, size_t at) {
  if (text.substr(at, 2) == "\\\n") return at + 2;
  return text.substr(at, 3) == "\\\r\n" ? at + 3 : at;
}

}  // namespace

class SourceLexer {
 public:
  SourceLexer(std::string_view source, Dialect dialect) : is_cpp_(dialect == Dialect::kCuda) {
    Splice(source);
  }

  LexedSource Run() {
    while (at_ < text_.size()) Step();
    return std::move(lexed_);
  }

 private:
  // Lines are joined before anything else is looked at, as every compiler does.
  void Splice(std::string_view source) {
    auto spliced = std::make_unique<std::string>();
    spliced->reserve(source.size());
    for (size_t at = 0; at < source.size();) {
      if (const size_t end = AfterSplice(source, at); end > at) {
        splices_.push_back(spliced->size());
        at = end;
      } else {
        spliced->push_back(source[at++]);
      }
    }
    text_ = *spliced;
    lexed_.spliced_ = std::move(spliced);
  }

  void Step() {
    const char c = text_[at_];
    if (c == '\n') {
      is_line_start_ = true;
      Advance(1);
    } else if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
      Advance(1);
    } else if (IsComment()) {
      SkipComment();
    } else if (is_line_start_ && (c == '#' || StartsWith("%:"))) {
      Directive(c == '#' ? 1 : 2);
    } else {
      is_line_start_ = false;
      Token(lexed_.tokens_);
    }
  }

  bool IsComment() const { return StartsWith("//") || StartsWith("/*"); }

  void SkipComment() {
    const size_t begin = at_;
    SkipCommentText();
    lexed_.comments_.push_back({begin, at_});
  }

  void SkipCommentText() {
    if (StartsWith("//")) return AdvanceTo(text_.find('\n', at_));
    const int begin_line = line_;
    const size_t end = text_.find("*/", at_ + 2);
    lexed_.is_ambiguous_ |= end == std::string_view::npos;
    AdvanceTo(end == std::string_view::npos ? end : end + 2);
    // Some compilers take what follows a newline in a comment for a line's start.
    is_line_start_ |= line_ > begin_line;
  }

  // Up to the end of the line, which is left; a block comment may hold newlines.
  void Directive(size_t mark) {
    SourceDirective directive{.is_digraph = mark == 2, .line = line_};
    Advance(mark);
    size_t operand_begin = std::string_view::npos;
    std::vector<SourceToken> tokens;
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) {
        Advance(1);
      } else if (IsComment()) {
        SkipComment();
      } else if (directive.name.empty() && operand_begin == std::string_view::npos &&
                 IsWordByte(text_[at_])) {
        Token(tokens);
        directive.name = tokens.back().text;
        tokens.clear();
      } else {
        operand_begin = std::min(operand_begin, at_);
        Token(tokens);
      }
    }
    if (operand_begin < at_) directive.operand = text_.substr(operand_begin, at_ - operand_begin);
    directive.tokens = std::move(tokens);
    lexed_.directives_.push_back(std::move(directive));
  }

  void Token(std::vector<SourceToken>& tokens) {
    using Kind = SourceToken::Kind;
    const char c = text_[at_];
    Kind kind = Kind::kPunctuation;
    size_t length = StartsWith("::") ? 2 : 1;
    if (const size_t prefix = RawPrefixLength(); prefix > 0) {
      kind = Kind::kString;
      length = RawLength(prefix);
    } else if (c == '"' || c == '\'') {
      kind = Kind::kString;
      length = QuotedLength(c);
    } else if (IsDigit(c) || (c == '.' && IsDigit(ByteAt(1)))) {
      kind = Kind::kNumber;
      length = NumberLength();
    } else if (IsWordByte(c)) {
      kind = Kind::kWord;
      length = 1;
      while (at_ + length < text_.size() && IsWordByte(text_[at_ + length])) ++length;
    }
    tokens.push_back({.kind = kind, .text = text_.substr(at_, length), .line = line_});
    Advance(length);
  }

  // 0 behind the end.
  char ByteAt(size_t distance) const {
    return at_ + distance < text_.size() ? text_[at_ + distance] : '\0';
  }

  // A preprocessing number of the standard: `1e-5f`, `.5`, `0x1fULL` and `1'000` whole.
  size_t NumberLength() const {
    size_t length = 1;
    while (at_ + length < text_.size()) {
      const char c = ByteAt(length);
      const bool is_separator = is_cpp_ && c == '\'' && IsWordByte(ByteAt(length + 1));
      const bool is_signed =
          (c == '+' || c == '-') && kBeforeSign.find(ByteAt(length - 1)) != std::string_view::npos;
      if (!IsWordByte(c) && c != '.' && !is_separator && !is_signed) break;
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

  // `R"tag( ... )tag"`; `prefix` bytes stand before the first quote. Lines are not
  // spliced inside, which only this one string would have to undo.
  size_t RawLength(size_t prefix) {
    const size_t begin = at_ + prefix + 1;
    // The standard allows 16 bytes of tag.
    const std::string_view tag = text_.substr(begin, 17);
    const size_t open = tag.find('(');
    if (open == std::string_view::npos) {
      lexed_.is_ambiguous_ = true;
      return prefix + 1;
    }
    const std::string closing = ")" + std::string(tag.substr(0, open)) + "\"";
    const size_t end = text_.find(closing, begin + open);
    const size_t length =
        end == std::string_view::npos ? text_.size() - at_ : end + closing.size() - at_;
    const std::string_view inside = text_.substr(begin, length - prefix - 2);
    const auto next_splice = std::lower_bound(splices_.begin(), splices_.end(), at_);
    lexed_.is_ambiguous_ |= end == std::string_view::npos ||
                            inside.find_first_of("\n\"'#/") != std::string_view::npos ||
                            (next_splice != splices_.end() && *next_splice < at_ + length);
    return length;
  }

  size_t QuotedLength(char quote) {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2 : 1;
    }
    // An unterminated literal ends with its line.
    const bool is_closed = end < text_.size() && text_[end] == quote;
    lexed_.is_ambiguous_ |= !is_closed;
    return std::min(end + (is_closed ? 1 : 0), text_.size()) - at_;
  }

  bool StartsWith(std::string_view prefix) const {
    return text_.substr(at_, prefix.size()) == prefix;
  }

  void Advance(size_t length) { AdvanceTo(at_ + length); }

  void AdvanceTo(size_t end) {
    end = std::min(end, text_.size());
    const auto text = text_.substr(at_, end - at_);
    line_ += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    at_ = end;
    for (; spliced_lines_ < splices_.size() && splices_[spliced_lines_] <= at_; ++spliced_lines_) {
      ++line_;
    }
  }

  const bool is_cpp_;
  LexedSource lexed_;
  std::string_view text_;
  // Indices in `text_` before which a line was joined to the one before.
  std::vector<size_t> splices_;
  size_t spliced_lines_ = 0;
  size_t at_ = 0;
  int line_ = 1;
  // Only blanks and comments so far on this line.
  bool is_line_start_ = true;
};

LexedSource LexSource(std::string_view source, Dialect dialect) {
  return SourceLexer(source, dialect).Run();
}

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/source_check.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "kernel/graph/text.h"
#include "kernel/program/opencl_guard.h"
#include "kernel/program/source_lexer.h"

namespace mtmc::kernel {
namespace {

// Marks and isolates of bidirectional text, as UTF-8: U+061C, U+200E, U+200F,
// U+202A to U+202E, U+2066 to U+2069.
bool IsBidirectionalMark(std::string_view text) {
  if (text.substr(0, 2) == "\xd8\x9c") return true;
  if (text.substr(0, 2) == "\xe2\x80") {
    const auto last = static_cast<unsigned char>(text.size() > 2 ? text[2] : 0);
    return last == 0x8e || last == 0x8f || (last >= 0xaa && last <= 0xae);
  }
  if (text.substr(0, 2) == "\xe2\x81") {
    const auto last = static_cast<unsigned char>(text.size() > 2 ? text[2] : 0);
    return last >= 0xa6 && last <= 0xa9;
  }
  return false;
}

bool IsControl(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text.front());
  if (byte == '\r') return text.substr(0, 2) != "\r\n";
  return (byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7f;
}

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

bool IsWordByte(char c) { return c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c)); }

// A source without its line splices, and the line that each byte came from.
class SplicedText {
 public:
  explicit SplicedText(std::string_view text) {
    int line = 1;
    for (size_t at = 0; at < text.size(); ++at) {
      if (const size_t length = SpliceLength(text.substr(at)); length > 0) {
        at += length - 1;
        ++line;
        continue;
      }
      text_.push_back(text[at]);
      lines_.push_back(line);
      if (text[at] == '\n') ++line;
    }
  }

  std::string_view text() const { return text_; }

  int line(size_t at) const { return lines_[at]; }

 private:
  static size_t SpliceLength(std::string_view text) {
    if (text.substr(0, 2) == "\\\n") return 2;
    return text.substr(0, 3) == "\\\r\n" ? 3 : 0;
  }

  std::string text_;
  std::vector<int> lines_;
};

// Finds the ends of blanks and block comments, in linear time for positions that
// grow.
class BlankSkipper {
 public:
  explicit BlankSkipper(std::string_view text) : text_(text) {}

  // Index after the blanks and block comments at `at`.
  size_t Skip(size_t at) {
    at = SkipPlain(at);
    if (text_.substr(at, 2) != "/*") return at;
    if (comment_end_ < at + 4) comment_end_ = EndOfComment(at);
    if (comment_end_ == skipped_from_) return skipped_to_;
    size_t end = SkipPlain(comment_end_);
    while (text_.substr(end, 2) == "/*") end = SkipPlain(EndOfComment(end));
    skipped_from_ = comment_end_;
    skipped_to_ = end;
    return end;
  }

 private:
  size_t SkipPlain(size_t at) const {
    while (at < text_.size() && IsBlank(text_[at])) ++at;
    return at;
  }

  size_t EndOfComment(size_t at) const {
    const size_t end = text_.find("*/", at + 2);
    return end == std::string_view::npos ? text_.size() : end + 2;
  }

  const std::string_view text_;
  // After the first `*/` behind the last comment that was looked at.
  size_t comment_end_ = 0;
  // The last comment's end, and where the blanks and comments behind it end.
  size_t skipped_from_ = 0;
  size_t skipped_to_ = 0;
};

std::string_view WordAt(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && IsWordByte(text[end])) ++end;
  return text.substr(at, end - at);
}

// The file that `operand` names between quotes or angles; empty for a macro.
std::string_view IncludedFile(std::string_view operand) {
  const char closing = operand.empty()          ? '\0'
                       : operand.front() == '<' ? '>'
                       : operand.front() == '"' ? '"'
                                                : '\0';
  if (closing == '\0') return {};
  const size_t end = operand.find_first_of(std::string{closing, '\n'}, 1);
  if (end == std::string_view::npos || operand[end] != closing) return {};
  return operand.substr(1, end - 1);
}

// A path below the include folders, as in `cuda/std/limits` or `mma.h`.
bool IsPlainRelative(std::string_view path) {
  const bool is_plain = std::all_of(path.begin(), path.end(), [](char c) {
    return IsWordByte(c) || c == '.' || c == '/' || c == '-' || c == '+';
  });
  return !path.empty() && is_plain && path.front() != '/' &&
         path.find("..") == std::string_view::npos;
}

class SourceChecker {
 public:
  SourceChecker(std::string_view text, Dialect dialect)
      : text_(text), dialect_(dialect), lexed_(LexSource(text, dialect)) {}

  std::vector<Diagnostic> Run() {
    CheckSpellings();
    if (lexed_.is_ambiguous()) {
      CheckEveryHash();
    } else {
      for (const SourceDirective& directive : lexed_.directives()) CheckDirective(directive);
    }
    if (dialect_ == Dialect::kOpenCl) CheckWords();
    return std::move(diagnostics_);
  }

 private:
  void CheckSpellings() {
    int line = 1;
    for (size_t at = 0; at < text_.size(); ++at) {
      const std::string_view rest = text_.substr(at);
      if (rest.front() == '\n') ++line;
      if (rest.front() == '\\' && rest.size() > 1 && IsBlank(rest[1]) &&
          IsLineEnd(rest.substr(1))) {
        Report(line, "a backslash stands before blanks at the end of a line; remove the blanks");
      }
      // As the end of a comment's line, it would join the next one to it.
      const bool is_joint = rest.substr(0, 3) == "?\?/" && IsLineEnd(rest.substr(3));
      if (is_joint || (lexed_.is_ambiguous() && IsTrigraph(rest))) ReportTrigraph(rest, line);
    }
    CheckTrigraphs(lexed_.tokens());
    for (const SourceDirective& directive : lexed_.directives()) CheckTrigraphs(directive.tokens);
  }

  static bool IsLineEnd(std::string_view text) {
    const size_t end = text.find_first_not_of(" \t\r");
    return end == std::string_view::npos || text[end] == '\n';
  }

  // Those that compilers which still have them see as `#`, a backslash or no quote.
  static bool IsTrigraph(std::string_view text) {
    const std::string_view start = text.substr(0, 3);
    return start == "?\?=" || start == "?\?/" || start == "?\?'";
  }

  void CheckTrigraphs(const std::vector<SourceToken>& tokens) {
    const std::string_view text = lexed_.spliced();
    for (const SourceToken& token : tokens) {
      const size_t begin = static_cast<size_t>(token.text.data() - text.data());
      for (size_t at = begin; at < begin + token.text.size(); ++at) {
        if (!IsTrigraph(text.substr(at))) continue;
        ReportTrigraph(text.substr(at), token.line);
        break;
      }
    }
  }

  void ReportTrigraph(std::string_view text, int line) {
    Report(line, Concat("the trigraph `", text.substr(0, 3), "` is refused"));
  }

  void CheckDirective(const SourceDirective& directive) {
    if (directive.is_digraph) {
      Report(directive.line, "the digraph `%:` is refused; write `#`");
    }
    CheckInclusion(directive.name, directive.operand, directive.line);
    for (const SourceToken& token : directive.tokens) {
      if (token.text == "__has_include" || token.text == "__has_embed") {
        Report(token.line, Concat("`", token.text, "` is refused: it would tell about the host"));
      }
    }
  }

  void CheckInclusion(std::string_view name, std::string_view operand, int line) {
    if (name == "include_next" || name == "import" || name == "embed") {
      Report(line, Concat("`#", name, "` is refused"));
    } else if (name == "include") {
      CheckInclude(operand, line);
    }
  }

  void CheckInclude(std::string_view operand, int line) {
    if (dialect_ == Dialect::kOpenCl) {
      return Report(line, "an opencl source includes no files; paste what it needs");
    }
    if (!IsPlainRelative(IncludedFile(operand))) {
      Report(line,
             "`#include` takes a plain name such as <cuda_fp16.h>, no macro and no path "
             "outside the toolkit");
    }
  }

  // Where it cannot be told what is a comment: looks at every `#`, in comments and
  // strings too.
  void CheckEveryHash() {
    const SplicedText spliced(text_);
    const std::string_view text = spliced.text();
    BlankSkipper blanks(text);
    // Only blanks, or the end of a comment, stand before on this line.
    bool is_line_start = true;
    for (size_t at = 0; at < text.size(); ++at) {
      const bool is_digraph = is_line_start && text.substr(at, 2) == "%:";
      const bool is_comment_end = text[at] == '/' && at > 0 && text[at - 1] == '*';
      is_line_start = text[at] == '\n' || is_comment_end || (is_line_start && IsBlank(text[at]));
      if (text[at] != '#' && !is_digraph) continue;
      const size_t word_at = blanks.Skip(at + (is_digraph ? 2 : 1));
      const std::string_view word = WordAt(text, word_at);
      if (is_digraph && !word.empty()) {
        Report(spliced.line(at), "the digraph `%:` is refused; write `#`");
      }
      CheckInclusion(word, text.substr(blanks.Skip(word_at + word.size())), spliced.line(at));
    }
    for (const std::string_view probe : {"__has_include", "__has_embed"}) {
      const size_t at = text.find(probe);
      if (at == std::string_view::npos) continue;
      Report(spliced.line(at), Concat("`", probe, "` is refused: it would tell about the host"));
    }
  }

  void CheckWords() {
    for (Diagnostic& diagnostic : CheckOpenClWords(lexed_)) {
      Report(diagnostic.line, std::move(diagnostic.message));
    }
  }

  void Report(int line, std::string message) {
    constexpr size_t kMaxDiagnostics = 20;
    if (diagnostics_.size() < kMaxDiagnostics) {
      diagnostics_.push_back({.line = line, .message = std::move(message)});
    }
  }

  const std::string_view text_;
  const Dialect dialect_;
  const LexedSource lexed_;
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace

std::vector<Diagnostic> CheckCharacters(std::string_view text) {
  int line = 1;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (rest.front() == '\n') ++line;
    if (IsControl(rest)) {
      return {{.line = line, .message = "the text holds a control character"}};
    }
    if (IsBidirectionalMark(rest)) {
      return {{.line = line, .message = "the text holds a mark that turns the writing direction"}};
    }
  }
  return {};
}

std::vector<Diagnostic> CheckSource(std::string_view text, Dialect dialect) {
  return SourceChecker(text, dialect).Run();
}

}  // namespace mtmc::kernel

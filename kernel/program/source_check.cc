// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/source_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "kernel/graph/text.h"
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
      : text_(text), spliced_(text), dialect_(dialect) {}

  std::vector<Diagnostic> Run() {
    CheckSpellings();
    CheckInclusions();
    if (dialect_ == Dialect::kOpenCl) {
      CheckWords();
    } else {
      CheckNamespaces();
    }
    return std::move(diagnostics_);
  }

 private:
  void CheckSpellings() {
    int line = 1;
    for (size_t at = 0; at < text_.size(); ++at) {
      const std::string_view rest = text_.substr(at);
      if (rest.front() == '\n') ++line;
      if (rest.substr(0, 3) == "?\?=" || rest.substr(0, 3) == "?\?/") {
        Report(line, Concat("the trigraph `", rest.substr(0, 3), "` is refused"));
      }
      if (rest.substr(0, 2) == "\\ " || rest.substr(0, 2) == "\\\t") {
        const size_t end = rest.find_first_not_of(" \t\r", 1);
        if (end == std::string_view::npos || rest[end] == '\n') {
          Report(line, "a backslash stands before blanks at the end of a line; remove the blanks");
        }
      }
    }
  }

  // Looks at every `#`, in comments and strings too: what is a comment is for the
  // compiler to say, and none needs to name a file outside.
  void CheckInclusions() {
    const std::string_view text = spliced_.text();
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
        Report(spliced_.line(at), "the digraph `%:` is refused; write `#`");
      }
      if (word == "include_next" || word == "import" || word == "embed") {
        Report(spliced_.line(at), Concat("`#", word, "` is refused"));
      } else if (word == "include") {
        CheckInclude(blanks.Skip(word_at + word.size()), spliced_.line(at));
      }
    }
    for (const std::string_view probe : {"__has_include", "__has_embed"}) {
      const size_t at = text.find(probe);
      if (at == std::string_view::npos) continue;
      Report(spliced_.line(at), Concat("`", probe, "` is refused: it would tell about the host"));
    }
  }

  // `at` is where the file's name begins.
  void CheckInclude(size_t at, int line) {
    if (dialect_ == Dialect::kOpenCl) {
      return Report(line, "an opencl source includes no files; paste what it needs");
    }
    const std::string_view text = spliced_.text();
    const std::string_view path = IncludedFile(text.substr(at));
    if (!IsPlainRelative(path)) {
      Report(line,
             "`#include` takes a plain name such as <cuda_fp16.h>, no macro and no path "
             "outside the toolkit");
    }
  }

  void CheckWords() {
    for (const SourceToken& token : LexSource(text_, dialect_)) {
      const auto& words = ForbiddenOpenClWords();
      if (token.kind != SourceToken::Kind::kWord ||
          std::find(words.begin(), words.end(), token.text) == words.end()) {
        continue;
      }
      Report(token.line, Concat("`", token.text, "` is refused: a kernel only computes"));
    }
  }

  // The toolkit's own constants may lie in a module's memory, so nobody else
  // takes their names.
  void CheckNamespaces() {
    constexpr std::array<std::string_view, 5> kToolkit = {"cuda", "cooperative_groups", "cub",
                                                          "thrust", "nvcuda"};
    // A static member's name looks like that of a namespace.
    constexpr std::array<std::string_view, 4> kScopes = {"namespace", "struct", "class", "union"};
    std::string_view previous;
    for (const SourceToken& token : LexSource(text_, dialect_)) {
      const bool is_toolkit =
          std::find(kToolkit.begin(), kToolkit.end(), token.text) != kToolkit.end();
      const bool is_scope = std::find(kScopes.begin(), kScopes.end(), previous) != kScopes.end();
      if (is_toolkit && is_scope) is_opening_ = true;
      if (token.text == "{" && is_opening_) {
        Report(token.line, "a name of the CUDA toolkit is reopened; use another one");
      }
      if (token.text == "{" || token.text == ";" || token.text == "=") is_opening_ = false;
      previous = token.text;
    }
    if (const size_t at = spliced_.text().find("__cudart"); at != std::string_view::npos) {
      Report(spliced_.line(at), "names with `__cudart` are the compiler's");
    }
  }

  void Report(int line, std::string message) {
    constexpr size_t kMaxDiagnostics = 20;
    if (diagnostics_.size() < kMaxDiagnostics) {
      diagnostics_.push_back({.line = line, .message = std::move(message)});
    }
  }

  const std::string_view text_;
  const SplicedText spliced_;
  const Dialect dialect_;
  // After `namespace cuda` or `struct cuda`, until what follows is known.
  bool is_opening_ = false;
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

const std::vector<std::string_view>& ForbiddenOpenClWords() {
  // Inline assembly, output, code that runs while a library is loaded, and where
  // the stack of the host lies.
  static const std::vector<std::string_view> words = {"asm",
                                                      "__asm",
                                                      "__asm__",
                                                      "printf",
                                                      "__builtin_printf",
                                                      "constructor",
                                                      "__constructor__",
                                                      "destructor",
                                                      "__destructor__",
                                                      "ifunc",
                                                      "__ifunc__",
                                                      "__builtin_return_address",
                                                      "__builtin_frame_address"};
  return words;
}

}  // namespace mtmc::kernel

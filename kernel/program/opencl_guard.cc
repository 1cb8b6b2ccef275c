// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/opencl_guard.h"

#include <algorithm>
#include <array>

#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// An honest source has no use for these, not even as names.
constexpr std::array kPoisoned = std::to_array<std::string_view>(
    {"asm", "__asm", "__asm__", "printf", "__builtin_printf", "__constructor__", "__destructor__",
     "__ifunc__", "__section__", "__init_priority__", "__builtin_return_address",
     "__builtin_frame_address",
     // Clocks, and what tells one thread or processor from another.
     "__builtin_readcyclecounter", "__builtin_readsteadycounter", "__builtin_ia32_rdtsc",
     "__builtin_ia32_rdtscp", "__builtin_ia32_rdpmc", "__builtin_ia32_rdpid",
     "__builtin_ia32_rdpru", "__builtin_ia32_rdfsbase32", "__builtin_ia32_rdfsbase64",
     "__builtin_ia32_rdgsbase32", "__builtin_ia32_rdgsbase64", "__builtin_thread_pointer",
     "__builtin_arm_rsr", "__builtin_arm_rsr64", "clock_read_device", "clock_read_work_group",
     "clock_read_sub_group", "clock_read_hilo_device", "clock_read_hilo_work_group",
     "clock_read_hilo_sub_group"});

// Attributes whose names are words of any source.
constexpr std::array<std::string_view, 5> kRenamed = {"constructor", "destructor", "ifunc",
                                                      "section", "init_priority"};

constexpr std::string_view kPrefix = "__mtmc_";

template <size_t kSize>
bool IsAmong(const std::array<std::string_view, kSize>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class WordChecker {
 public:
  explicit WordChecker(const LexedSource& source) : source_(source) {}

  std::vector<Diagnostic> Run() {
    for (const SourceDirective& directive : source_.directives()) CheckDirective(directive);
    const std::vector<SourceToken>& tokens = source_.tokens();
    for (size_t i = 0; i < tokens.size(); ++i) {
      CheckPoisoned(tokens[i]);
      CheckKernelName(tokens[i]);
      CheckAttribute(i);
    }
    return std::move(diagnostics_);
  }

 private:
  // Here a word would undo what GuardOpenCl() does.
  void CheckDirective(const SourceDirective& directive) {
    for (const SourceToken& token : directive.tokens) {
      CheckPoisoned(token);
      if (IsAmong(kRenamed, token.text) || token.text.substr(0, kPrefix.size()) == kPrefix ||
          (directive.name == "pragma" && MentionsInString(token))) {
        Report(token, "is refused in a preprocessor line; use another name");
      }
    }
  }

  // As in `#pragma push_macro("constructor")`.
  static bool MentionsInString(const SourceToken& token) {
    return token.kind == SourceToken::Kind::kString &&
           std::any_of(kRenamed.begin(), kRenamed.end(), [&](std::string_view word) {
             return token.text.find(word) != std::string_view::npos;
           });
  }

  void CheckPoisoned(const SourceToken& token) {
    if (token.kind == SourceToken::Kind::kWord && IsAmong(kPoisoned, token.text)) {
      Report(token, "is refused: a kernel only computes");
    }
  }

  // A renamed kernel could not be launched.
  void CheckKernelName(const SourceToken& token) {
    const std::string_view text = token.text;
    if (text == "__kernel" || text == "kernel") is_kernel_ = true;
    if (text == "{" || text == ";" || text == "}") is_kernel_ = false;
    if (is_kernel_ && text == "(" && IsAmong(kRenamed, previous_)) {
      diagnostics_.push_back(
          {.line = token.line, .message = Concat("`", previous_, "` is no name for a kernel")});
    }
    previous_ = text;
  }

  // Inside `__attribute__((...))`; elsewhere the new name takes the meaning.
  void CheckAttribute(size_t at) {
    const std::vector<SourceToken>& tokens = source_.tokens();
    const std::string_view text = tokens[at].text;
    if (text == "__attribute__" || text == "__attribute") {
      is_attribute_ = true;
      depth_ = 0;
      return;
    }
    if (!is_attribute_) return;
    if (text == "(") ++depth_;
    if (text == ")") --depth_;
    if (IsAmong(kRenamed, text)) Report(tokens[at], "is refused: a kernel only computes");
    if (depth_ <= 0) is_attribute_ = false;
  }

  void Report(const SourceToken& token, std::string_view what) {
    diagnostics_.push_back({.line = token.line, .message = Concat("`", token.text, "` ", what)});
  }

  const LexedSource& source_;
  // Between `__kernel` and the kernel's body.
  bool is_kernel_ = false;
  std::string_view previous_;
  // Inside the brackets of an attribute, `depth_` of them.
  bool is_attribute_ = false;
  int depth_ = 0;
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace

std::vector<Diagnostic> CheckOpenClWords(const LexedSource& source) {
  std::vector<Diagnostic> diagnostics = WordChecker(source).Run();
  // A preprocessor line may hide in what looks like a literal.
  if (diagnostics.empty() && source.is_ambiguous()) {
    const auto is_there = [&](std::string_view word) {
      return source.spliced().find(word) != std::string_view::npos;
    };
    if (std::any_of(kRenamed.begin(), kRenamed.end(), is_there) || is_there(kPrefix)) {
      diagnostics.push_back({.line = 1, .message = "a literal or comment has no end"});
    }
  }
  return diagnostics;
}

std::string GuardOpenCl(std::string_view source) {
  std::string text = "#pragma GCC poison";
  for (const std::string_view word : kPoisoned) Append(text, " ", word);
  for (const std::string_view word : kRenamed) {
    Append(text, "\n#define ", word, " ", kPrefix, word);
  }
  Append(text, "\n#line 1\n", source);
  return text;
}

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/program/program.h"

namespace mtmc::kernel {

// One token of C-like source.
struct SourceToken {
  enum class Kind { kWord, kNumber, kString, kPunctuation };
  Kind kind = Kind::kPunctuation;
  // Punctuation is one byte, except `::`. A string keeps its quotes.
  std::string_view text;
  // 1-based line where it begins.
  int line = 1;
};

// One preprocessor line with those that continue it.
struct SourceDirective {
  // `include` of `#include <a.h>`; empty where no word follows the `#`.
  std::string_view name;
  // What follows the name, up to the end of the line.
  std::string_view operand;
  // Of the operand.
  std::vector<SourceToken> tokens;
  // It begins with `%:`.
  bool is_digraph = false;
  int line = 1;
};

// Part of a text: from one index up to another.
struct SourceExtent {
  size_t begin = 0;
  size_t end = 0;
};

// A source as its compiler sees it: lines spliced, comments gone, preprocessor
// lines apart. Moves keep the tokens valid.
class LexedSource {
 public:
  const std::vector<SourceToken>& tokens() const { return tokens_; }

  const std::vector<SourceDirective>& directives() const { return directives_; }

  // Where the comments stand in spliced(), in order.
  const std::vector<SourceExtent>& comments() const { return comments_; }

  // The text with its lines joined.
  std::string_view spliced() const { return *spliced_; }

  // Compilers may disagree on what is a string or a comment: a literal or comment
  // without end, a raw string over several lines or with quotes, comments or
  // preprocessor lines in it. Nothing may be concluded from what is not a token.
  bool is_ambiguous() const { return is_ambiguous_; }

 private:
  friend class SourceLexer;

  // What the views point into.
  std::unique_ptr<const std::string> spliced_;
  std::vector<SourceToken> tokens_;
  std::vector<SourceDirective> directives_;
  std::vector<SourceExtent> comments_;
  bool is_ambiguous_ = false;
};

// Splits C, CUDA or OpenCL source into tokens. Accepts any bytes: an unterminated
// comment or raw string runs to the end. Raw strings and digit separators are
// CUDA's alone: OpenCL is C99. REQUIRES: `dialect` is not kTriton.
LexedSource LexSource(std::string_view source, Dialect dialect);

}  // namespace mtmc::kernel

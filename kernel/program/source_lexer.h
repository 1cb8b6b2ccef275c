// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// Splits C, CUDA or OpenCL source into tokens. Comments, preprocessor lines
// (continued ones too) and line splices yield none. Accepts any bytes: an
// unterminated comment or raw string runs to the end. Raw strings and digit
// separators are CUDA's alone: OpenCL is C99. Tokens point into `source`.
// REQUIRES: `dialect` is not kTriton.
std::vector<SourceToken> LexSource(std::string_view source, Dialect dialect);

}  // namespace mtmc::kernel

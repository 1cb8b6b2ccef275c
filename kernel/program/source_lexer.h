// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

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
// unterminated comment or string runs to the end. Tokens point into `source`.
std::vector<SourceToken> LexSource(std::string_view source);

}  // namespace mtmc::kernel

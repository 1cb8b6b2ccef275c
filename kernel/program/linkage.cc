// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/linkage.h"

#include "kernel/program/signature.h"
#include "kernel/program/source_lexer.h"

namespace mtmc::kernel {

std::string WithCLinkage(std::string_view source) {
  const KernelScan scan = FindKernels(source, Dialect::kCuda);
  if (scan.plain_declarations.empty()) return std::string(source);
  const LexedSource lexed = LexSource(source, Dialect::kCuda);
  if (lexed.is_ambiguous()) return std::string(source);
  std::string text;
  size_t at = 0;
  for (const PlainDeclaration& declaration : scan.plain_declarations) {
    if (declaration.begin < at) continue;
    text += lexed.spliced().substr(at, declaration.begin - at);
    text += "extern \"C\" ";
    at = declaration.begin;
    if (!declaration.static_word) continue;
    text += lexed.spliced().substr(at, *declaration.static_word - at);
    at = *declaration.static_word + std::string_view("static").size();
  }
  text += lexed.spliced().substr(at);
  return text;
}

}  // namespace mtmc::kernel

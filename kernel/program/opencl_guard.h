// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernel/program/parser.h"
#include "kernel/program/source_lexer.h"

namespace mtmc::kernel {

// What no OpenCL source may do, because on CPU devices it would act as the worker
// and not as a kernel: inline assembly, output, a look at the stack or at a clock, and
// attributes by which code runs while a library is loaded. Says where, in plain words; macros
// that paste a word together are left to GuardOpenCl().
std::vector<Diagnostic> CheckOpenClWords(const LexedSource& source);

// `source` for an OpenCL compiler, with the same line numbers, which refuses those
// words or takes their meaning, macros or not:
//   1. what only acts (`asm`, `printf`, `__constructor__`) is poisoned;
//   2. what a variable may be called, too (`constructor`) is renamed throughout, so
//      that an attribute of that name does nothing. That is sound as long as no
//      preprocessor line of the source names such a word, which CheckOpenClWords()
//      refuses.
// REQUIRES: CheckOpenClWords() found nothing in `source`.
std::string GuardOpenCl(std::string_view source);

}  // namespace mtmc::kernel

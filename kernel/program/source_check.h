// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "kernel/program/parser.h"
#include "kernel/program/program.h"

namespace mtmc::kernel {

// What a text may not hold whatever its dialect: control characters, which some
// compilers take for the end of a line, and marks that change the direction of
// writing, so that a reader sees another program than the compiler. `text` is
// UTF-8.
std::vector<Diagnostic> CheckCharacters(std::string_view text);

// Source that could reach beyond the device: files of the build host
// (`#include` by another path than a plain relative one), what CheckOpenClWords()
// refuses; and spellings (trigraphs, digraphs, a backslash before blanks) that hide
// lines from readers and from the other checks. What stands in a comment or a string
// is no finding, unless compilers may disagree on what those are. It is a first line
// of defence with clear messages: what macros paste together is for the compiler
// adapters. REQUIRES: `dialect` is not kTriton.
std::vector<Diagnostic> CheckSource(std::string_view text, Dialect dialect);

}  // namespace mtmc::kernel

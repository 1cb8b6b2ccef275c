// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/program/program.h"

namespace mtmc::kernel {

// What is wrong with a program's text, for its author. A value: a bad program
// is a failed candidate, never an error of the service.
struct Diagnostic {
  // 1-based line of the text; 0 when it concerns the whole.
  int line = 0;
  // Lower case, says what to change.
  std::string message;
};

// `line 12: message` lines, at most 64 KiB.
std::string ToText(const std::vector<Diagnostic>& diagnostics);

struct ParseResult {
  // Absent when there is at least one diagnostic.
  std::optional<Program> program;
  std::vector<Diagnostic> diagnostics;
};

// Reads a program text. Accepts any bytes; the text may have at most 1 MiB and
// 4096 directives. Thread-safe.
ParseResult ParseProgram(std::string_view text);

}  // namespace mtmc::kernel

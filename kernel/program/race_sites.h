// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernel/program/program.h"
#include "kernel/program/signature.h"
#include "kernel/program/source_lexer.h"

namespace mtmc::kernel {

// A statement of a kernel after which, or in the middle of which, a block can be held up so that
// other blocks see what is done and not what is still to be done.
struct RaceSite {
  enum class Kind {
    // Ends with an atomic operation: what the other blocks know of this one.
    kAtomic,
    // Stores a number to memory that other blocks see: it is computed, and not there yet.
    kStore,
    // The same, and the statement behind it is an atomic operation or a store elsewhere, before
    // which nothing orders the store: to other blocks it may come before.
    kUnorderedStore,
  };
  Kind kind = Kind::kAtomic;
  // Places in LexSource(text).spliced(): the statement with its semicolon, and the one behind an
  // unordered store.
  size_t begin = 0;
  size_t end = 0;
  size_t next_end = 0;
  // Of a store.
  std::string target;
  std::string value;
  // It declares what the statements behind it use.
  bool is_declaration = false;
};

// The sites of the body of `kernel`, in the order of the text; empty where its blocks do not see
// what others write, or preprocessor lines choose between statements. What only one block can see,
// such as a local array, is no memory of others. Statements that are not plain (a loop's head, an
// initializer in braces, a macro) are left alone. REQUIRES: `source` is that of the kernel's scan.
std::vector<RaceSite> FindRaceSites(const Program& program, const LexedSource& source,
                                    const KernelSignature& kernel);

}  // namespace mtmc::kernel

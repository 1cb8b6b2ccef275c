// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/program/parser.h"
#include "kernel/program/program.h"
#include "kernel/program/scalar_type.h"

namespace mtmc::kernel {

// One parameter of a kernel as its source declares it.
struct KernelParameter {
  std::string name;
  // Element or scalar type without qualifiers, words in one order: `float`,
  // `unsigned long long`, `float4`, `__nv_bfloat16`.
  std::string type;
  bool is_pointer = false;
  // The pointee is const, or the OpenCL address space is `__constant`.
  bool is_const = false;
  bool is_restrict = false;
  // OpenCL `__global` or `__constant`; always true for a CUDA pointer.
  bool is_global = false;
  // Its name stands in the kernel's body, other than as `(void)name;`, or may come
  // out of a macro there.
  bool is_used = true;
};

// Declaration of a kernel that has a body.
struct KernelSignature {
  std::string name;
  std::vector<KernelParameter> parameters;
  // Declared `extern "C"`, so that its symbol is its name. True for OpenCL.
  bool has_c_linkage = false;
  // Largest block of `__launch_bounds__`, where it is given as an expression
  // of literals and tune parameters.
  std::optional<IntegerExpression> max_threads;
  // Block of `reqd_work_group_size`.
  std::optional<std::array<IntegerExpression, 3>> required_block;
  // Line of the name, 1-based.
  int line = 0;
  // Indices behind the `{` of its body and of the `}` that ends it, in LexSource(text).spliced();
  // the latter 0 where there is none.
  size_t body = 0;
  size_t body_end = 0;
};

// Declaration of a CUDA kernel, with a body or without one, that is not `extern "C"`: its symbol is
// another one than its name. Places are those of LexSource(text).spliced().
struct PlainDeclaration {
  // Its first word.
  size_t begin = 0;
  // `static`, which linkage of C does not go with; absent where it is not.
  std::optional<size_t> static_word;
};

struct KernelScan {
  std::vector<KernelSignature> kernels;
  std::vector<PlainDeclaration> plain_declarations;
  // Kernels that a plan cannot launch: templates, references, namespaces.
  std::vector<Diagnostic> diagnostics;
};

// Finds the kernels of a CUDA or OpenCL source: functions marked `__global__`,
// `__kernel` or `kernel`, outside comments, strings and preprocessor lines.
// Macros are not expanded, so a kernel whose declaration comes from one is not
// found. Accepts any bytes. REQUIRES: `dialect` is not kTriton.
KernelScan FindKernels(std::string_view text, Dialect dialect);

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/writer/safe_name.h"

#include <cctype>
#include <set>
#include <string>

#include "kernel/graph/text.h"
#include "kernel/writer/device_functions.h"

namespace mtmc::kernel {
namespace {

const std::set<std::string, std::less<>>& TakenNames() {
  static const auto* const names = new std::set<std::string, std::less<>>{
      // C, C++
      "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class",
      "const", "continue", "default", "delete", "do", "double", "else", "enum", "explicit",
      "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long",
      "main", "mutable", "namespace", "new", "not", "nullptr", "operator", "or", "private",
      "protected", "public", "register", "requires", "restrict", "return", "short", "signed",
      "sizeof", "static", "struct", "switch", "template", "this", "throw", "true", "try", "typedef",
      "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "while",
      "xor", "NULL", "INFINITY", "NAN", "assert", "signbit",
      // types and words of CUDA and OpenCL
      "half", "uint", "uchar", "ushort", "ulong", "global", "local", "constant", "kernel",
      "event_t", "image", "sampler_t", "size_t", "ptrdiff_t", "bfloat16", "clock", "threadIdx",
      "blockIdx", "blockDim", "gridDim", "warpSize", "read_only", "write_only", "read_write",
      "pipe", "generic",
      // functions of the device
      "abs", "acos", "acosh", "all", "any", "as_float", "as_uint", "asin", "asinh", "atan", "atan2",
      "atanh", "barrier", "cbrt", "ceil", "clamp", "copysign", "cos", "cosh", "cross", "degrees",
      "distance", "divide", "dot", "erf", "erfc", "exp", "exp10", "exp2", "expm1", "fabs", "fdim",
      "floor", "fma", "fmax", "fmin", "fmod", "fract", "frexp", "gamma", "hypot", "ilogb", "isnan",
      "isinf", "j0", "j1", "jn", "ldexp", "length", "lgamma", "log", "log10", "log1p", "log2",
      "logb", "mad", "mad24", "max", "min", "mix", "modf", "mul24", "nan", "nextafter", "norm",
      "normalize", "pow", "pown", "powr", "popcount", "printf", "radians", "remainder", "remquo",
      "rint", "rhypot", "rootn", "rotate", "round", "rsqrt", "select", "shuffle", "sign", "sin",
      "sincos", "sinh", "smoothstep", "sqrt", "std", "step", "tan", "tanh", "tgamma", "trunc", "y0",
      "y1", "yn", "malloc", "free", "memcpy", "memset", "bitselect", "clz", "ctz", "hadd",
      "upsample", "prefetch", "index", "wait",
      // the plan
      "None", "True", "False", "inf", "ceil_div", "_"};
  return *names;
}

}  // namespace

bool IsTakenName(std::string_view name) {
  if (TakenNames().contains(name) || name.substr(0, 2) == "__") return true;
  // Vector types and their loads: float4, vload8, load_f32x4.
  size_t digits = name.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) --digits;
  const std::string_view stem = name.substr(0, digits);
  for (std::string_view vector :
       {"float", "double", "half", "int", "uint", "char", "uchar", "short", "ushort", "long",
        "ulong", "longlong", "vload", "vstore", "vload_half", "vstore_half"}) {
    if (stem == vector) return true;
  }
  return !DeviceFunctionsIn(Concat(name, "(")).empty();
}

std::string SafeName(std::string_view name, std::string_view suffix) {
  // Longer names hide the code; the nest's names are unique in their first bytes in practice, and
  // callers make them unique anyway.
  constexpr size_t kMaxBytes = 48;
  std::string safe;
  for (char c : name.substr(0, kMaxBytes)) {
    safe += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  if (safe.empty() || std::isdigit(static_cast<unsigned char>(safe[0]))) safe = "v" + safe;
  if (IsTakenName(safe)) safe = Concat(safe, "_", suffix);
  return safe;
}

}  // namespace mtmc::kernel

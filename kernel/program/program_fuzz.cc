// SPDX-License-Identifier: Apache-2.0

// Any bytes may be parsed and checked; what parses prints to directives that
// parse again, and kernels have C linkage once they got it.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "kernel/program/checker.h"
#include "kernel/program/linkage.h"
#include "kernel/program/numbers.h"
#include "kernel/program/parser.h"
#include "kernel/program/printer.h"
#include "kernel/program/signature.h"
#include "kernel/program/units.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mtmc::kernel;
  const std::string text(reinterpret_cast<const char*>(data), size);
  FindKernels(text, Dialect::kCuda);
  FindKernels(text, Dialect::kOpenCl);
  const std::string linked = WithCLinkage(text);
  if (WithCLinkage(linked) != linked) std::abort();
  size_t num_kernels = 0;
  const auto units = SplitIntoUnits(text);
  for (const SourceUnit& unit : units) {
    const size_t inside = FindKernels(unit.text, Dialect::kCuda).kernels.size();
    if (inside != unit.kernels.size()) std::abort();
    num_kernels += inside;
  }
  if (!units.empty() && num_kernels != FindKernels(text, Dialect::kCuda).kernels.size())
    std::abort();
  const ParseResult result = ParseProgram(text);
  if (!result.program) {
    if (result.diagnostics.empty()) std::abort();
    return 0;
  }
  const CheckLimits limits = {.allowed_calls = {"aten::relu", "aten::logsumexp"},
                              .allows_triton = true};
  CheckProgram(*result.program, {}, limits, DefaultBindings(*result.program));
  Variants(*result.program, 16);
  NumbersOf(*result.program);
  const std::string printed = PrintDirectives(*result.program);
  const ParseResult again = ParseProgram(printed);
  if (!again.program || PrintDirectives(*again.program) != printed) std::abort();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/worked_examples.h"

#include <catch2/catch.hpp>

#include "kernel/program/checker.h"

namespace mtmc::gateway {
namespace {

using kernel::Dialect;

kernel::ProgramInterface DeclaredInterface(const kernel::Program& program) {
  kernel::ProgramInterface interface;
  for (const kernel::Tensor& tensor : program.tensors) {
    if (tensor.role == kernel::Tensor::Role::kBuffer) continue;
    const bool is_output = tensor.role == kernel::Tensor::Role::kOutput;
    (is_output ? interface.outputs : interface.inputs).push_back(tensor);
  }
  return interface;
}

TEST_CASE("Worked examples are sound programs in both dialects", "[gateway]") {
  const Dialect dialect = GENERATE(Dialect::kOpenCl, Dialect::kCuda);
  for (const std::string& type : WorkedExampleTypes()) {
    const std::string text = FindWorkedExample(type, dialect).program;
    if (text.empty()) continue;
    CAPTURE(type, text);

    const kernel::ParseResult result = kernel::ParseProgram(text);

    INFO(kernel::ToText(result.diagnostics));
    REQUIRE(result.program);
    CHECK(result.program->dialect == dialect);
    CHECK(text.find('@') == text.find("//@") + 2);
    const kernel::CheckLimits limits = {.allowed_calls = {"aten::linear"}};
    for (const kernel::Bindings& bindings : kernel::Variants(*result.program, 64)) {
      CHECK(kernel::ToText(kernel::CheckProgram(*result.program, DeclaredInterface(*result.program),
                                                limits, bindings)) == "");
    }
  }
}

TEST_CASE("Every type of action has advice", "[gateway]") {
  const std::string type = GENERATE("fuse", "tile", "reorder", "pipeline", "vectorize", "tensorize",
                                    "split", "simplify", "library", "capture", "tune", "fix_build",
                                    "fix_launch", "fix_result", "something new");
  CAPTURE(type);

  CHECK(FindWorkedExample(type, Dialect::kCuda).advice.size() > 40);
}

}  // namespace
}  // namespace mtmc::gateway

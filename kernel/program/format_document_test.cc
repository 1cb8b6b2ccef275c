// SPDX-License-Identifier: Apache-2.0

// The examples of docs/program-format.md are sound programs.

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "kernel/program/checker.h"

namespace mtmc::kernel {
namespace {

// The fenced blocks of `document` that hold a program.
std::vector<std::string> FindExamples(const std::string& document) {
  std::vector<std::string> examples;
  size_t at = 0;
  while ((at = document.find("```c", at)) != std::string::npos) {
    const size_t begin = document.find('\n', at) + 1;
    const size_t end = document.find("```", begin);
    examples.push_back(document.substr(begin, end - begin));
    at = end + 3;
  }
  return examples;
}

// The interface that `program` itself declares.
ProgramInterface DeclaredInterface(const Program& program) {
  ProgramInterface interface;
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role == Tensor::Role::kBuffer) continue;
    (tensor.role == Tensor::Role::kOutput ? interface.outputs : interface.inputs).push_back(tensor);
  }
  return interface;
}

TEST_CASE("The examples of the format's document are sound programs", "[program]") {
  std::ifstream stream(MTMC_TEST_DATA "/program-format.md");
  const std::string document{std::istreambuf_iterator<char>(stream), {}};
  const std::vector<std::string> examples = FindExamples(document);
  REQUIRE(examples.size() == 2);

  for (const std::string& example : examples) {
    const ParseResult result = ParseProgram(example);
    INFO(example << ToText(result.diagnostics));
    REQUIRE(result.program);
    const CheckLimits limits = {.allowed_calls = {"aten::linear"}};
    for (const Bindings& bindings : Variants(*result.program, 100)) {
      CHECK(ToText(CheckProgram(*result.program, DeclaredInterface(*result.program), limits,
                                bindings)) == "");
    }
  }
}

}  // namespace
}  // namespace mtmc::kernel

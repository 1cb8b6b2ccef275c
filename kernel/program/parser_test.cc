// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/parser.h"

#include <catch2/catch.hpp>

namespace mtmc::kernel {
namespace {

using Catch::Matchers::Contains;

constexpr char kExample[] = R"(//@ mtmc 1 cuda
//@ input  x  f32[16384,4096]
//@ weight w  f32[4096,4096]
//@ buffer h  f32[16384,4096]
//@ output y  f32[16384,1]
//@ tune   BM = 64 128 ; BN = 128 256 ; STAGES = 3 4
//@ launch gemm_gelu grid=(4096/BN, 16384/BM) block=256 shared=STAGES*(BM+BN)*32*4 args=(x, w, h, -1, 1e-5)
//@ call   aten::logsumexp(h, [1], True) -> y precision=tf32
//@ capture
extern "C" __global__ void gemm_gelu() {}
)";

// First diagnostic of a header plus `directives`; empty when there is none.
std::string FirstDiagnostic(const std::string& directives) {
  const ParseResult result = ParseProgram("//@ mtmc 1 opencl\n" + directives);
  return result.diagnostics.empty() ? "" : ToText({result.diagnostics.front()});
}

TEST_CASE("ParseProgram reads every kind of directive", "[program]") {
  const ParseResult result = ParseProgram(kExample);

  INFO(ToText(result.diagnostics));
  REQUIRE(result.program);
  const Program& program = *result.program;
  CHECK(program.dialect == Dialect::kCuda);
  CHECK(program.tensors.size() == 4);
  CHECK(program.FindTensor("h")->role == Tensor::Role::kBuffer);
  CHECK(ToText(program.FindTensor("y")->type) == "f32[16384,1]");
  CHECK(program.tune.size() == 3);
  CHECK(program.has_capture);
  CHECK(program.text == kExample);
}

TEST_CASE("ParseProgram reads the fields of a launch", "[program]") {
  const Program program = ParseProgram(kExample).program.value();

  const Launch& launch = std::get<Launch>(program.steps[0]);
  const Bindings bindings = DefaultBindings(program);
  CHECK(launch.kernel == "gemm_gelu");
  CHECK(launch.line == 7);
  CHECK(launch.grid[0].Evaluate(bindings).value() == 32);
  CHECK(launch.grid[1].Evaluate(bindings).value() == 256);
  CHECK(launch.grid[2].Evaluate(bindings).value() == 1);
  CHECK(launch.block[0].Evaluate(bindings).value() == 256);
  CHECK(launch.shared_bytes.Evaluate(bindings).value() == 73728);
}

TEST_CASE("ParseProgram tells tensors, integers and reals apart", "[program]") {
  const Program program = ParseProgram(kExample).program.value();

  const std::vector<LaunchArgument>& arguments = std::get<Launch>(program.steps[0]).arguments;
  REQUIRE(arguments.size() == 5);
  CHECK(std::get<std::string>(arguments[0].value) == "x");
  CHECK(std::get<IntegerExpression>(arguments[3].value).Evaluate({}).value() == -1);
  CHECK(std::get<double>(arguments[4].value) == 1e-5);
}

TEST_CASE("ParseProgram takes a parenthesised sum for one dimension", "[program]") {
  const ParseResult result =
      ParseProgram("//@ mtmc 1 opencl\n//@ launch f args=() block=(2 + 3) * 4 grid=(8 + 1)/3\n");

  REQUIRE(result.program);
  const Launch& launch = std::get<Launch>(result.program->steps[0]);
  CHECK(launch.block[0].Evaluate({}).value() == 20);
  CHECK(launch.grid[0].Evaluate({}).value() == 3);
}

TEST_CASE("ParseProgram accepts tensors declared below their launch", "[program]") {
  CHECK(FirstDiagnostic(
            "//@ launch f grid=N block=1 args=(x, N)\n//@ tune N = 4\n//@ output x f32[4]\n")
            .empty());
}

TEST_CASE("ParseProgram names the line that is wrong", "[program]") {
  struct Case {
    std::string directives;
    std::string expected;
  };

  const auto c = GENERATE(values<Case>({
      {"", "no launch"},
      {"//@ frobnicate x", "line 2: unknown directive \"frobnicate\""},
      {"//@ mtmc 1 cuda", "line 2: `mtmc` stands twice"},
      {"//@ input x", "is no tensor type"},
      {"//@ input 1x f32[1]", "cannot be a name"},
      {"//@ input None f32[1]", "cannot be a name"},
      {"//@ input x f32[-1]", "is no tensor type"},
      {"//@ input x f33[1]", "is no tensor type"},
      {"//@ input x f64[9223372036854775807,2]", "is no tensor type"},
      {"//@ input x f32[1]\n//@ tune x = 1", "line 3: the name x is declared twice"},
      {"//@ tune N", "write `tune NAME"},
      {"//@ tune N = ", "has 0 values"},
      {"//@ tune N = 1 a", "is no integer"},
      {"//@ tune N = 1 1", "lists 1 twice"},
      {"//@ launch", "is no identifier"},
      {"//@ launch f", "needs `grid=`"},
      {"//@ launch f grid=1 args=()", "needs `block=`"},
      {"//@ launch f grid=1 block=1", "needs `args=`"},
      {"//@ launch f grid=1 block=1 args=() grid=2", "stands twice"},
      {"//@ launch f grid=(1,1,1,1) block=1 args=()", "must have 1 to 3"},
      {"//@ launch f grid=() block=1 args=()", "must have 1 to 3"},
      {"//@ launch f grid=(1 block=1 args=()", "unbalanced"},
      {"//@ launch f grid= block=1 args=()", "missing"},
      {"//@ launch f grid=1.5 block=1 args=()", "column"},
      {"//@ launch f what grid=1 block=1 args=()", "not understood"},
      {"//@ launch f grid=1 block=1 args=(x,)", "empty element"},
      {"//@ launch f grid=1 block=1 args=(nowhere)", "`nowhere` is neither"},
      {"//@ launch f grid=N block=1 args=()", "`N` is neither"},
      {"//@ capture now", "takes nothing"},
      {"//@ capture\n//@ capture", "stands twice"},
      {"//@ call aten::relu(x)", "misses `-> result`"},
  }));
  CAPTURE(c.directives);

  CHECK_THAT(FirstDiagnostic(c.directives), Contains(c.expected));
}

TEST_CASE("ParseProgram gives up on endless tune lists at once", "[program]") {
  std::string directive = "//@ tune N =";
  for (int i = 0; i < 150000; ++i) directive += " " + std::to_string(i);

  CHECK_THAT(FirstDiagnostic(directive), Contains("has more than 64 values"));
}

TEST_CASE("ParseProgram wants its header first", "[program]") {
  const std::string text = GENERATE("", "void f() {}", "//@ input x f32[1]", "//@ mtmc",
                                    "//@ mtmc 2 cuda", "//@ mtmc 1 metal");
  CAPTURE(text);

  CHECK_FALSE(ParseProgram(text).program);
}

TEST_CASE("ParseProgram refuses texts that no compiler should see", "[program]") {
  const std::string text =
      GENERATE(std::string("//@ mtmc 1 cuda\0", 16), std::string("//@ mtmc 1 cuda\n\xff"),
               std::string("//@ mtmc 1 cuda\n\xed\xa0\x80"), std::string((16 << 20) + 1, ' '));

  const ParseResult result = ParseProgram(text);

  CHECK_FALSE(result.program);
  CHECK(result.diagnostics.size() == 1);
}

TEST_CASE("ParseProgram reads a Triton text through its own comment mark", "[program]") {
  const ParseResult result = ParseProgram(
      "#@ mtmc 1 triton\n#@ output y f32[4]\n#@ launch f grid=1 block=128 args=(y)\nimport "
      "triton\n");

  REQUIRE(result.program);
  CHECK(result.program->dialect == Dialect::kTriton);
}

TEST_CASE("ParseProgram stops after many mistakes", "[program]") {
  std::string text = "//@ mtmc 1 cuda\n";
  for (int i = 0; i < 4000; ++i) text += "//@ nonsense\n";

  const ParseResult result = ParseProgram(text);

  CHECK(result.diagnostics.size() <= 110);
  CHECK(ToText(result.diagnostics).size() <= 64 * 1024);
}

}  // namespace
}  // namespace mtmc::kernel

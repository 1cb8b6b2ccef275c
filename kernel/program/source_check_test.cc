// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/source_check.h"

#include <catch2/catch.hpp>
#include <string>

#include "kernel/program/signature.h"
#include "kernel/program/source_lexer.h"

namespace mtmc::kernel {
namespace {

using Catch::Matchers::Contains;

std::string Check(const std::string& source, Dialect dialect = Dialect::kCuda) {
  return ToText(CheckSource(source, dialect));
}

std::string CheckOpenCl(const std::string& source) { return Check(source, Dialect::kOpenCl); }

TEST_CASE("CheckSource lets a CUDA source include the toolkit's headers", "[program]") {
  CHECK(Check("#include <cuda_fp16.h>\n#  include \"cooperative_groups/reduce.h\"\n"
              "#define S(x) #x\n// 95%: of the peak\n#pragma unroll\n") == "");
}

TEST_CASE("CheckSource refuses files of the host, however they are spelt", "[program]") {
  const std::string source = GENERATE(
      "#include \"/etc/passwd\"\n", "#include </etc/passwd>\n", "#include \"../../secret.h\"\n",
      "# /* x\n */ include \"/etc/passwd\"\n", "/* a */ #include \"/etc/passwd\"\n",
      "#in\\\nclude \"/etc/passwd\"\n", "#include PATH\n", "#include_next <a.h>\n",
      "#import \"a.h\"\n", "#embed \"a.bin\"\n", "%:include \"a.h\"\n", "#include \"a.h\n",
      "#define A \"/*\"\n#include \"/etc/passwd\"\n", "#if __has_include(\"/etc/passwd\")\n",
      "const char* s = u8R\"(/*)\";\n#include \"/etc/passwd\"\n", "#include <a b.h>\n");

  INFO(source);
  CHECK_THAT(Check(source), Contains("line "));
  CHECK_THAT(CheckOpenCl(source), Contains("line "));
}

TEST_CASE("CheckSource refuses every inclusion in OpenCL", "[program]") {
  CHECK_THAT(CheckOpenCl("int a;\n#include \"a.h\"\n"), Contains("line 2: an opencl source"));
}

TEST_CASE("CheckSource refuses what makes an OpenCL kernel more than a computation", "[program]") {
  CHECK_THAT(CheckOpenCl("__kernel void f() { __asm__(\"syscall\"); }"), Contains("`__asm__`"));
  CHECK_THAT(CheckOpenCl("__kernel void f() { printf(\"a\"); }"), Contains("`printf`"));
  CHECK(CheckOpenCl("// as fast as asm\n__kernel void f() {}") == "");
  CHECK(Check("void f() { asm(\"nanosleep.u32 1;\"); }") == "");
}

TEST_CASE("CheckSource sees OpenCL code behind what only C++ reads as a string", "[program]") {
  CHECK_THAT(CheckOpenCl("#define R\nconstant char* s = R\"(\"; void f() { asm(\"\"); } //)\"\n"),
             Contains("`asm`"));
  CHECK_THAT(CheckOpenCl("#define S(x)\nS(0'\"') void f() { asm(\"\"); }\n"), Contains("`asm`"));
}

TEST_CASE("CheckSource finds nothing in comments and strings", "[program]") {
  const std::string source = GENERATE(
      "// #include \"/etc/passwd\"\nvoid f() {}\n", "/* a\n#include \"../b.h\"\n*/\nvoid f() {}\n",
      "// no __has_include, no constructor, no asm(\"\"), as printf would\nvoid f() {}\n",
      "/* #import <a.h> %: */ void f() {}\n", "// a comment that \\\n#include \"/goes/on.h\"\n");

  INFO(source);
  CHECK(Check(source) == "");
  CHECK(CheckOpenCl(source) == "");
}

TEST_CASE("CheckSource finds no words in a CUDA source's strings", "[program]") {
  CHECK(Check("const char* s = \"#include </a> __has_include\"; int constructor;\n") == "");
  CHECK(Check("namespace cuda { int section; }\n") == "");
}

TEST_CASE("CheckSource looks everywhere where compilers may disagree", "[program]") {
  const std::string source =
      GENERATE("#if 0\ndon't /*\n#endif\n// #include \"/etc/passwd\"\n",
               "auto s = R\"(\n// #include \"/etc/passwd\"\n)\";\n",
               "/* #include \"/etc/passwd\"\n", "int x; /*\n*/ #include \"/etc/passwd\"\n");

  INFO(source);
  CHECK_THAT(Check(source), Contains("plain name"));
}

TEST_CASE("LexSource reads what a spliced line spells", "[program]") {
  const LexedSource lexed =
      LexSource("/\\\n/ a \"\nin\\\nt x; /* b *\\\n/ int y;\n#def\\\nine A \\\n 1 // c\nint z;\n",
                Dialect::kCuda);

  std::string text;
  for (const SourceToken& token : lexed.tokens()) text += std::string(token.text) + " ";
  CHECK(text == "int x ; int y ; int z ; ");
  CHECK(lexed.tokens().back().line == 9);
  REQUIRE(lexed.directives().size() == 1);
  CHECK(lexed.directives()[0].name == "define");
  CHECK(lexed.directives()[0].line == 6);
  CHECK(lexed.directives()[0].tokens.size() == 2);
  CHECK_FALSE(lexed.is_ambiguous());
}

TEST_CASE("CheckSource refuses spellings that hide lines", "[program]") {
  CHECK_THAT(Check("?\?=include <a.h>\n"), Contains("trigraph"));
  CHECK_THAT(Check("// a ?\?/\nint x;\n"), Contains("trigraph"));
  CHECK_THAT(Check("int a = 1 ?\?'b'/*';\n*/;\n"), Contains("trigraph"));
  CHECK_THAT(Check("const char* s = \"?\?/\";\n"), Contains("trigraph"));
  CHECK(Check("// why?\?= (really?\?/path?\?)\nint x;\n") == "");
  CHECK_THAT(Check("// a \\ \t\nint x;\n"), Contains("line 1: a backslash"));
  CHECK_THAT(Check("// a \\ "), Contains("a backslash"));
  CHECK(Check("#define A \\\n  1\n const char* s = \"\\ \";\n") == "");
}

TEST_CASE("CheckSource takes time in proportion to the text", "[program]") {
  const auto repeat = [](const std::string& part) {
    std::string text;
    while (text.size() < size_t{1} << 18) text += part;
    return text;
  };

  // Each took minutes when comments were searched anew from every position.
  for (const std::string& text :
       {repeat("#/*"), repeat("#/*") + "*/" + repeat("/**/"), repeat("%:"), repeat("R\""),
        repeat("__has_"), repeat("/*#*/"), repeat("#include/*")}) {
    CheckSource(text, Dialect::kCuda);
    CheckSource(text, Dialect::kOpenCl);
    FindKernels(text, Dialect::kCuda);
  }
}

TEST_CASE("CheckCharacters refuses what readers and compilers see differently", "[program]") {
  CHECK(CheckCharacters("int a;\r\n\t// \xc3\xa9, \xe2\x80\x94\n").empty());
  CHECK(CheckCharacters("int a; // b\rint c;\n").size() == 1);
  CHECK(CheckCharacters("int a;\f\n").size() == 1);
  CHECK(CheckCharacters("a\n\xe2\x80\xae b").at(0).line == 2);
  CHECK(CheckCharacters("\xe2\x81\xa6").size() == 1);
  CHECK(CheckCharacters("\xd8\x9c").size() == 1);
}

TEST_CASE("LexSource knows the strings of directives and of each dialect", "[program]") {
  const auto kernels = [](const std::string& text, Dialect dialect) {
    return FindKernels(text, dialect).kernels.size();
  };

  CHECK(kernels("#define S \"/*\"\n__global__ void f() {}\n", Dialect::kCuda) == 1);
  CHECK(kernels("auto s = u8R\"(\" __global__ void f() {} )\";\n", Dialect::kCuda) == 0);
  CHECK(kernels("auto s = LR\"x()\" )x\"; __global__ void f() {}\n", Dialect::kCuda) == 1);
  CHECK(kernels("R\"(\"; __kernel void f() {}\n", Dialect::kOpenCl) == 1);
  CHECK(kernels("int n = 1'000; __global__ void f() {}\n", Dialect::kCuda) == 1);
}

}  // namespace
}  // namespace mtmc::kernel

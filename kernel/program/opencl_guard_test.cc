// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/opencl_guard.h"

#include <catch2/catch.hpp>
#include <string>

namespace mtmc::kernel {
namespace {

using Catch::Matchers::Contains;

std::string Check(const std::string& source) {
  return ToText(CheckOpenClWords(LexSource(source, Dialect::kOpenCl)));
}

TEST_CASE("CheckOpenClWords lets a variable have any name", "[program]") {
  CHECK(Check("__kernel void f(__global int* section) { int constructor = 1; *section = "
              "constructor; }") == "");
  CHECK(Check("// __attribute__((constructor)) asm\n__kernel void f() {}") == "");
  CHECK(Check("void g() {} __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void f() {}") ==
        "");
}

TEST_CASE("CheckOpenClWords refuses what acts outside a kernel", "[program]") {
  const std::string source = GENERATE(
      "__attribute__((constructor)) void f() {}",
      "__attribute((aligned(4), section(\"a\"))) int x;",
      "__attribute__((__constructor__)) void f() {}", "void f() { asm(\"\"); }",
      "void f() { printf(\"\"); }", "__kernel void constructor() {}",
      "ulong f() { return __builtin_ia32_rdtsc(); }", "ulong f() { return clock_read_device(); }");

  INFO(source);
  CHECK(Check(source) != "");
}

TEST_CASE("CheckOpenClWords refuses lines that would undo the guard", "[program]") {
  const std::string source =
      GENERATE("#undef constructor\n", "#un\\\ndef constructor\n", "#define section 1\n",
               "#define __mtmc_constructor constructor\n", "#pragma push_macro(\"ifunc\")\n",
               "#define A __attribute__((constructor))\n", "#if 0\n'\n#endif\nint section;\n");

  INFO(source);
  CHECK(Check(source) != "");
}

TEST_CASE("GuardOpenCl keeps the numbers of lines", "[program]") {
  CHECK_THAT(GuardOpenCl("int x;\n"), Contains("\n#line 1\nint x;\n"));
}

}  // namespace
}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/linkage.h"

#include <catch2/catch.hpp>
#include <string>

namespace mtmc::kernel {
namespace {

TEST_CASE("A kernel gets C linkage where it has none", "[program]") {
  CHECK(WithCLinkage("__global__ void k(float* y) {}") ==
        "extern \"C\" __global__ void k(float* y) {}");
  CHECK(WithCLinkage("int a;\n__global__ void k(float* y) {}\nint b;\n__global__ void l() {}\n") ==
        "int a;\nextern \"C\" __global__ void k(float* y) {}\nint b;\n"
        "extern \"C\" __global__ void l() {}\n");
}

TEST_CASE("What stands before the mark belongs to the declaration", "[program]") {
  CHECK(WithCLinkage("MACRO(a)\nvoid __launch_bounds__(2 * (64)) __global__ k() {}") ==
        "MACRO(a)\nextern \"C\" void __launch_bounds__(2 * (64)) __global__ k() {}");
  CHECK(WithCLinkage("static __global__ void k() {}") == "extern \"C\"  __global__ void k() {}");
  CHECK(WithCLinkage("__global__ static void k() {}") == "extern \"C\" __global__  void k() {}");
  CHECK(WithCLinkage("int f(int);\ninline __global__ void k() {}") ==
        "int f(int);\nextern \"C\" inline __global__ void k() {}");
}

TEST_CASE("A prototype has the linkage of its definition", "[program]") {
  CHECK(WithCLinkage("__global__ void k(int);\n__global__ void k(int a) {}") ==
        "extern \"C\" __global__ void k(int);\nextern \"C\" __global__ void k(int a) {}");
}

TEST_CASE("Nothing changes where every kernel has its name as symbol", "[program]") {
  for (const std::string source :
       {"extern \"C\" __global__ void k() {}", "extern \"C\" { __global__ void k() {} }",
        "// __global__ void k() {}\n", "template <int n> __global__ void k() {}",
        "namespace a { __global__ void k() {} }", "__device__ void f() {}", "", "__global__"}) {
    CHECK(WithCLinkage(source) == source);
  }
}

}  // namespace
}  // namespace mtmc::kernel

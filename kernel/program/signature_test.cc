// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/signature.h"

#include <catch2/catch.hpp>

namespace mtmc::kernel {
namespace {

using Catch::Matchers::Contains;

KernelSignature OnlyKernel(const std::string& text, Dialect dialect = Dialect::kCuda) {
  const KernelScan scan = FindKernels(text, dialect);
  INFO(ToText(scan.diagnostics));
  REQUIRE(scan.kernels.size() == 1);
  return scan.kernels.front();
}

TEST_CASE("FindKernels reads a CUDA kernel with all its qualifiers", "[program]") {
  const KernelSignature kernel = OnlyKernel(R"(
    extern "C" __global__ void __launch_bounds__(32*BM, 2)
    gemm(const float* __restrict__ x, float *const y, unsigned long long n, const __nv_bfloat16 *w, float eps)
    { y[0] = x[0]; })");

  CHECK(kernel.name == "gemm");
  CHECK(kernel.has_c_linkage);
  CHECK(kernel.line == 3);
  REQUIRE(kernel.max_threads);
  CHECK(kernel.max_threads->text() == "32*BM");
  REQUIRE(kernel.parameters.size() == 5);
  CHECK((kernel.parameters[0].is_const && kernel.parameters[0].is_restrict &&
         kernel.parameters[0].is_pointer));
  CHECK((!kernel.parameters[1].is_const && kernel.parameters[1].is_pointer));
  CHECK(kernel.parameters[2].type == "unsigned long long");
  CHECK_FALSE(kernel.parameters[2].is_pointer);
  CHECK(kernel.parameters[3].type == "__nv_bfloat16");
  CHECK(kernel.parameters[4].name == "eps");
}

TEST_CASE("FindKernels reads an OpenCL kernel with a required block", "[program]") {
  const KernelSignature kernel = OnlyKernel(
      "__kernel __attribute__((reqd_work_group_size(64, 2, 1)))\n"
      "void f(__global const float4 *restrict x, __constant half *w, global uint *y, const long n) "
      "{}",
      Dialect::kOpenCl);

  REQUIRE(kernel.required_block);
  CHECK(kernel.required_block->at(1).text() == "2");
  REQUIRE(kernel.parameters.size() == 4);
  CHECK((kernel.parameters[0].is_const && kernel.parameters[0].is_global));
  CHECK(kernel.parameters[1].is_const);
  CHECK_FALSE(kernel.parameters[2].is_const);
  CHECK(kernel.parameters[3].type == "long");
}

TEST_CASE("FindKernels sees no kernel in comments, strings or preprocessor lines", "[program]") {
  const std::string text = GENERATE(
      "// __global__ void f(int a) {}", "/* __global__ void f(int a) {} */",
      "// continued \\\n __global__ void f(int a) {}",
      "const char* s = \"__global__ void f(int a) {}\";",
      "const char* s = R\"x(\" __global__ void f(int a) {} )x\";",
      "#define K __global__ void f(int a) {}", "#define K \\\n __global__ void f(int a) {}",
      "#define K /* \n */ __global__ void f(int a) {}", "__global__ void f(int a);",
      "/* unterminated __global__ void f(int a) {}", "'\\'' \"\\\" __global__ void f(int a) {}");
  CAPTURE(text);

  const KernelScan scan = FindKernels(text, Dialect::kCuda);

  CHECK(scan.kernels.empty());
  CHECK(scan.diagnostics.empty());
}

TEST_CASE("FindKernels is not misled by what surrounds a kernel", "[program]") {
  const std::string before = GENERATE(
      "", "template <int N> __device__ float g(float x) { return x; }\n", "struct S { int a; };\n",
      "static const char c = '{';\n", "#if 0\nint g() { return 1; }\n#endif\n",
      "namespace n { struct T { }; }\n", "using namespace std;\n", "__global__ void f(int* y);\n");
  CAPTURE(before);

  const KernelSignature kernel =
      OnlyKernel(before + "__global__ void f(int* y) { if (1) { y[0] = 1; } }");

  CHECK(kernel.name == "f");
  CHECK_FALSE(kernel.has_c_linkage);
}

TEST_CASE("FindKernels gives kernels of a linkage block C linkage", "[program]") {
  const KernelSignature kernel = OnlyKernel(
      "extern \"C\" {\n__device__ int g() { return 1; }\n__global__ void f(void) {}\n}\n");

  CHECK(kernel.has_c_linkage);
  CHECK(kernel.parameters.empty());
}

TEST_CASE("FindKernels refuses kernels that a plan cannot launch", "[program]") {
  struct Case {
    std::string text;
    std::string expected;
  };

  const auto c = GENERATE(values<Case>({
      {"template <int N> __global__ void f(int* y) {}", "is a template"},
      {"namespace a::b { __global__ void f(int* y) {} }", "inside a namespace"},
      {"namespace { __global__ void f(int* y) {} }", "inside a namespace"},
      {"__global__ void f(int& y) {}", "parameter 1"},
      {"__global__ void f(int a, float** y) {}", "parameter 2"},
      {"__global__ void f(std::array<int, 3> y) {}", "parameter 1"},
      {"__global__ void f(int a) {}\n__global__ void f(float a) {}", "defined twice"},
  }));
  CAPTURE(c.text);

  const KernelScan scan = FindKernels(c.text, Dialect::kCuda);

  REQUIRE_FALSE(scan.diagnostics.empty());
  CHECK_THAT(ToText(scan.diagnostics), Contains(c.expected));
}

TEST_CASE("FindKernels refuses local memory parameters", "[program]") {
  const KernelScan scan = FindKernels("__kernel void f(__local float* tile) {}", Dialect::kOpenCl);

  CHECK_THAT(ToText(scan.diagnostics), Contains("local memory"));
}

TEST_CASE("FindScalarType knows scalars and vectors", "[program]") {
  const auto [type, bytes, lanes] = GENERATE(table<std::string, int, int>({{"float", 4, 1},
                                                                           {"float4", 4, 4},
                                                                           {"double2", 8, 2},
                                                                           {"unsigned int", 4, 1},
                                                                           {"uchar16", 1, 16},
                                                                           {"half2", 2, 2},
                                                                           {"__nv_bfloat162", 2, 2},
                                                                           {"uint8_t", 1, 1},
                                                                           {"int64_t", 8, 1},
                                                                           {"size_t", 8, 1}}));
  CAPTURE(type);

  const std::optional<ScalarType> scalar = FindScalarType(type);

  REQUIRE(scalar);
  CHECK(scalar->bytes == bytes);
  CHECK(scalar->lanes == lanes);
  CHECK_FALSE(FindScalarType("MyType"));
}

TEST_CASE("FindKernels tells parameters that the body never names", "[program]") {
  const auto uses = [](const std::string& text) {
    std::string used;
    const KernelScan scan = FindKernels(text, Dialect::kCuda);
    REQUIRE(scan.kernels.size() == 1);
    for (const KernelParameter& parameter : scan.kernels[0].parameters) {
      if (parameter.is_used) used += parameter.name;
    }
    return used;
  };
  const std::string kernel = "__global__ void f(const float* a, float* b, int) ";

  CHECK(uses(kernel + "{ b[0] = 1; }") == "b");
  CHECK(uses(kernel + "{ /* a */ b[0] = \"a\"[0]; }") == "b");
  CHECK(uses(kernel + "{ (void)a; b[0] = 1; }") == "b");
  CHECK(uses(kernel + "{ b[0] = (float)a[0]; }") == "ab");
  CHECK(uses("#define READ a[0]\n" + kernel + "{ b[0] = READ; }") == "ab");
  CHECK(uses("#define P(x) x##_\n" + kernel + "{ b[0] = 1; }") == "ab");
}

}  // namespace
}  // namespace mtmc::kernel

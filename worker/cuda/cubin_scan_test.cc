// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cubin_scan.h"

#include <catch2/catch.hpp>
#include <memory>

#include "worker/cuda/nvrtc_fixture.h"

namespace mtmc::worker {
namespace {

constexpr char kKernel[] = "extern \"C\" __global__ void k(float* y, int i) ";

struct Case {
  std::string source;
  // Part of the message; empty for a source that is accepted.
  std::string expected;
};

void CheckCase(NvrtcCompiler& compiler, const Case& c) {
  const CompileResult result = compiler.Compile(c.source, {});
  INFO(c.source << "\n" << result.log);
  if (result.failure) UNSCOPED_INFO(result.failure->message);
  if (c.expected.empty()) {
    CHECK_FALSE(result.failure);
    CHECK_FALSE(result.binary.empty());
    return;
  }
  REQUIRE(result.failure);
  CHECK(result.failure->kind == Failure::Kind::kCheck);
  CHECK_THAT(result.failure->message, Catch::Contains(c.expected));
  CHECK(result.binary.empty());
}

}  // namespace

TEST_CASE("A CUDA program keeps no variable between launches", "[cubin]") {
  const auto compiler = FindCompiler();
  if (!compiler) return;
  const std::string kernel = kKernel;
  for (const Case& c : std::vector<Case>{
           {"__device__ int x; " + kernel + "{ y[0] = ++x; }", "`x` (4 bytes) outlives a launch"},
           {"int x = 3; " + kernel + "{ y[0] = ++x; }", "outlives a launch"},
           {"__managed__ int x; " + kernel + "{ y[0] = ++x; }", "outlives a launch"},
           {kernel + "{ static int x; y[0] = ++x; }", "outlives a launch"},
           {kernel + "{ static constexpr int t[] = {5, 6, 7}; const_cast<int&>(t[i]) = 1; }",
            "__constant__"},
           {"struct S { static constexpr int t[2] = {5, 6}; }; " + kernel +
                "{ asm volatile(\"st.global.u32 [%0], 7;\" :: \"l\"(S::t)); y[0] = S::t[i]; }",
            "outlives a launch"},
           {kernel + "{ const char* s = \"abc\"; y[0] = s[i]; ((char*)s)[i] = 1; }",
            "outlives a launch"},
           {kernel + "{ y[0] = sinf(y[1]); asm volatile(\"st.global.u32 [__cud\" "
                     "\"art_i2opi_f], 7;\"); }",
            "outlives a launch"},
           {"extern \"C\" __device__ unsigned __cudart_i2opi_f[6]; " + kernel +
                "{ y[0] = sinf(y[1]); __cudart_i2opi_f[0] = 7; }",
            "outlives a launch"},
           {kernel + "{ unsigned r; asm volatile(\"{ .global .u32 z; ld.global.u32 %0, [z]; "
                     "st.global.u32 [z], 7; }\" : \"=r\"(r)); y[0] = r; }",
            "outlives a launch"},
           {"namespace mine { __device__ int x; } " + kernel + "{ y[0] = ++mine::x; }",
            "outlives a launch"},
           {"namespace cuda { __device__ int x[64]; } " + kernel + "{ y[0] = ++cuda::x[i]; }",
            "outlives a launch"}}) {
    CheckCase(*compiler, c);
  }
}

TEST_CASE("A CUDA program calls nothing of the device's runtime", "[cubin]") {
  const auto compiler = FindCompiler();
  if (!compiler) return;
  const std::string kernel = kKernel;
  for (const Case& c : std::vector<Case>{
           {kernel + "{ printf(\"%d\", i); }", "remove printf"},
           {kernel + "{ y[0] = *(float*)malloc(4); }", "as a `buffer`"},
           {kernel + "{ y[0] = *new float; }", "as a `buffer`"},
           {kernel + "{ free(y); }", "as a `buffer`"},
           {"extern \"C\" __device__ void __assertfail(const char*, const char*, unsigned, const "
            "char*, size_t); " +
                kernel + "{ __assertfail(0, 0, 1, 0, 1); }",
            "which is off"}}) {
    CheckCase(*compiler, c);
  }
}

TEST_CASE("A CUDA kernel has the parameters that its declaration shows", "[cubin]") {
  const auto compiler = FindCompiler();
  if (!compiler) return;
  for (const Case& c : std::vector<Case>{
           {"#define k(a, b) k(a, b, long c)\n" + std::string(kKernel) + "{ y[0] = c; }",
            "other parameters"},
           {"#define int double\n" + std::string(kKernel) + "{ y[0] = i; }", "other parameters"},
           {"extern \"C\" __global__ void k(float4 v, char c, const half* h) {}", ""}}) {
    CheckCase(*compiler, {"#include <cuda_fp16.h>\n" + c.source, c.expected});
  }
}

TEST_CASE("Constants, shared memory and the toolkit's headers stay allowed", "[cubin]") {
  const int compute_capability = GENERATE(80, 90, 100);
  const auto compiler = FindCompiler(compute_capability);
  if (!compiler) return;
  const std::string kernel = kKernel;
  for (const Case& c : std::vector<Case>{
           {kernel + "{ y[i] = 1; }", ""},
           {"__constant__ int t[] = {1, 2, 3}; " + kernel + "{ y[0] = t[i]; }", ""},
           {kernel + "{ __shared__ int s[64]; s[i] = i; __syncthreads(); y[0] = s[i + 1]; }", ""},
           {"extern __shared__ float s[]; " + kernel + "{ s[i] = y[i]; y[0] = s[0]; }", ""},
           {kernel + "{ float a[64]; for (int j = 0; j < 64; ++j) a[j] = y[j]; y[0] = a[i]; }", ""},
           {kernel + "{ y[0] = sinf(y[1]) + cos((double)y[2]) + tgamma((double)y[3]); }", ""},
           {kernel + "{ static constexpr int t[] = {5, 6, 7}; y[0] = t[i]; }", ""},
           {"namespace mine { static constexpr float t[] = {5, 6, 7}; template <int N> struct S { "
            "static constexpr int t[] = {N, 2}; }; } " +
                kernel +
                "{ float sum = 0; for (float v : mine::t) sum += v; y[0] = sum + mine::t[i] + "
                "mine::S<4>::t[i]; }",
            ""},
           {kernel + "{ const char* s = \"abc\"; y[0] = s[i]; }", ""},
           {kernel + "{ assert(i > 0); y[0] = INFINITY; uint32_t n = i; y[1] = n; }", ""},
           {"#include <cuda_fp16.h>\n#include <mma.h>\n" + kernel + "{ y[0] = __half(y[1]); }", ""},
           {"#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n" + kernel +
                "{ namespace g = cooperative_groups; auto t = "
                "g::tiled_partition<32>(g::this_thread_"
                "block()); y[0] = g::reduce(t, y[i], g::plus<float>()); }",
            ""}}) {
    CheckCase(*compiler, c);
  }
}

TEST_CASE("Bytes that are no cubin are refused", "[cubin]") {
  CHECK_FALSE(ReadCubin(""));
  CHECK_FALSE(ReadCubin(std::string(64, '\0')));
  CHECK_FALSE(
      ReadCubin("\x7f"
                "ELF\x02\x01"));
  CHECK(CheckCubin("x", "", "")->kind == Failure::Kind::kCheck);
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/nvrtc_compiler.h"

#include <catch2/catch.hpp>
#include <map>
#include <string_view>

#include "common/testing/status_matchers.h"
#include "kernel/program/parser.h"
#include "kernel/program/stall.h"
#include "worker/cuda/cubin_scan.h"
#include "worker/cuda/cubin_set.h"
#include "worker/cuda/cuda_device.h"
#include "worker/cuda/nvrtc_fixture.h"

namespace mtmc::worker {
namespace {

bool IsElf(const std::string& binary) {
  return binary.starts_with(
      "\x7f"
      "ELF");
}

}  // namespace

TEST_CASE("NvrtcCompiler makes a cubin without a GPU", "[cuda]") {
  const int compute_capability = GENERATE(80, 90, 100);
  CAPTURE(compute_capability);
  auto compiler = FindCompiler(compute_capability);
  if (!compiler) return;

  const CompileResult result = compiler->Compile(
      "extern \"C\" __global__ void f(float* y) { y[threadIdx.x] = N; }", {{"N", 7}});

  CHECK_FALSE(result.failure);
  CHECK(IsElf(result.binary));
}

TEST_CASE("A source of many kernels has each of them", "[cuda]") {
  auto compiler = FindCompiler();
  if (!compiler) return;
  std::string source;
  for (int i = 0; i < 20; ++i) {
    source += "extern \"C\" __global__ void kernel_" + std::to_string(i) +
              "(float* y) { y[threadIdx.x] += " + std::to_string(i) + "; }\n";
  }

  const CompileResult result = compiler->Compile(source, {});

  CHECK_FALSE(result.failure);
  CHECK(IsElf(result.binary));
  for (int i = 0; i < 20; ++i) {
    CHECK(result.binary.find(".text.kernel_" + std::to_string(i)) != std::string::npos);
  }
  // One that is wrong is told as ever.
  CHECK(compiler->Compile(source + "__global__ void g() { nothing(); }", {}).log.find("nothing") !=
        std::string::npos);
}

TEST_CASE("A source of many kernels is compiled in parts, and again only where it changes",
          "[cuda]") {
  auto compiler = FindCompiler(90, /*in_units=*/true);
  if (!compiler) return;
  const auto source_of = [](int last) {
    std::string source = "__device__ float helped(float a) { return a * N; }\n";
    for (int i = 0; i < 20; ++i) {
      const std::string number = std::to_string(i == 19 ? last : i);
      source += "__global__ void kernel_" + std::to_string(i) +
                "(float* y) { y[threadIdx.x] += helped(" + number + "); }\n";
    }
    return source;
  };

  const CompileResult result = compiler->Compile(source_of(19), {{"N", 2}});

  REQUIRE_FALSE(result.failure);
  const auto cubins = SplitCubins(result.binary);
  REQUIRE(cubins);
  CHECK(cubins->size() == 20);
  const auto by_name = [](const std::vector<CubinPart>& parts) {
    std::map<std::string, std::string_view> found;
    for (const CubinPart& part : parts) {
      const auto contents = ReadCubin(part.cubin);
      REQUIRE(contents);
      REQUIRE(contents->kernels.size() == 1);
      for (const auto& [name, symbol] : part.symbols) {
        CHECK(symbol == contents->kernels[0].name);
        found[name] = part.cubin;
      }
    }
    return found;
  };
  const auto first = by_name(*cubins);
  CHECK(first.size() == 20);
  const CompileResult changed = compiler->Compile(source_of(77), {{"N", 2}});
  const auto others = SplitCubins(changed.binary);
  REQUIRE(others);
  for (const auto& [name, cubin] : by_name(*others)) {
    CHECK((cubin == first.at(name)) == (name != "kernel_19"));
  }
  // Kernels that differ in their names alone are compiled once.
  const CompileResult equal = compiler->Compile(source_of(7), {{"N", 2}});
  const auto fewer = SplitCubins(equal.binary);
  REQUIRE(fewer);
  CHECK(fewer->size() == 19);
  CHECK(by_name(*fewer).at("kernel_19") == first.at("kernel_7"));
  // Tune parameters are a part of what was compiled.
  CHECK(compiler->Compile(source_of(19), {{"N", 3}}).binary != result.binary);
  // What is wrong is told of the whole, with its line.
  const CompileResult wrong =
      compiler->Compile(source_of(19) + "__global__ void g() { nothing(); }", {{"N", 2}});
  REQUIRE(wrong.failure);
  CHECK(wrong.log.find("program.cu(22)") != std::string::npos);
  // What survives a launch is refused, whichever part writes it.
  const CompileResult stateful =
      compiler->Compile("__device__ float kept[4];\n" + source_of(19) +
                            "__global__ void g(float* y) { kept[0] = y[0]; }\n"
                            "__global__ void h(float* y) { y[0] = kept[0]; }\n",
                        {{"N", 2}});
  REQUIRE(stateful.failure);
  CHECK(stateful.failure->message.find("kept") != std::string::npos);
}

TEST_CASE("A kernel has its name as symbol, whatever its linkage", "[cuda]") {
  auto compiler = FindCompiler();
  if (!compiler) return;

  const CompileResult result = compiler->Compile(
      "__global__ void plain(float* y);\n"
      "void __launch_bounds__(64) __global__ plain(float* y) { *y = 1; }\n"
      "static __global__ void own(float* y) { *y = 2; }\n",
      {});

  REQUIRE_FALSE(result.failure);
  for (const std::string name : {".text.plain", ".text.own"}) {
    CHECK(result.binary.find(name + '\0') != std::string::npos);
  }
}

TEST_CASE("A program whose blocks are late compiles as the program does", "[cuda]") {
  auto compiler = FindCompiler();
  if (!compiler) return;
  const kernel::ParseResult parsed = kernel::ParseProgram(R"(//@ mtmc 1 cuda
//@ buffer n i32[1]
//@ output y f32[8]
//@ launch f grid=1 block=8 args=(n, y)
#include <cuda_fp16.h>
__global__ void f(int* n, float* y) {
  y[threadIdx.x] = __half2float(__float2half(1.0f));
  const int ticket = atomicAdd(n, 1);
  if (ticket == 7) y[ticket] += 1.0f;
}
)");
  REQUIRE(parsed.program);
  const auto places = GENERATE(kernel::StallPlaces::kBeginnings, kernel::StallPlaces::kMiddles);
  const std::string stalled = kernel::WithStalledBlocks(*parsed.program, 7, places);
  REQUIRE_FALSE(stalled.empty());

  const CompileResult result = compiler->Compile(stalled, {});

  INFO(result.log);
  CHECK_FALSE(result.failure);
}

TEST_CASE("NvrtcCompiler finds the CUDA headers", "[cuda]") {
  auto compiler = FindCompiler();
  if (!compiler) return;

  const CompileResult result = compiler->Compile(R"(
#include <cuda/std/cstdint>
#include <cuda_bf16.h>
#include <mma.h>
extern "C" __global__ void f(__nv_bfloat16* y) { y[0] = __float2bfloat16(1.0f); }
)",
                                                 {});

  INFO(result.log);
  CHECK_FALSE(result.failure);
}

TEST_CASE("NvrtcCompiler finds what good authors include", "[cuda]") {
  auto compiler = FindCompiler();
  if (!compiler) return;
  const std::string header =
      GENERATE("algorithm", "assert.h", "cassert", "cfloat", "climits", "cmath",
               "cooperative_groups.h", "cstddef", "cstdint", "cstdio", "cstring",
               "cub/block/block_reduce.cuh", "cuda_bf16.h", "cuda_fp16.h", "cuda_runtime.h",
               "float.h", "initializer_list", "limits", "limits.h", "math.h", "mma.h", "new",
               "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "type_traits", "utility");

  const CompileResult result = compiler->Compile(
      "#include <" + header + ">\nextern \"C\" __global__ void f(float* y) { y[0] = 1; }", {});

  INFO(header << "\n" << result.log);
  CHECK_FALSE(result.failure);
}

TEST_CASE("NvrtcCompiler's standard headers agree with libcu++", "[cuda]") {
  auto compiler = FindCompiler();
  if (!compiler) return;

  const CompileResult result = compiler->Compile(R"(
#include <cuda/std/cstdint>
#include <cuda/std/limits>
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
static_assert(std::is_same_v<uint64_t, std::uint64_t> && sizeof(intptr_t) == 8);
template <class T>
constexpr bool kAgrees =
    std::numeric_limits<T>::max() == cuda::std::numeric_limits<T>::max() &&
    std::numeric_limits<T>::min() == cuda::std::numeric_limits<T>::min() &&
    std::numeric_limits<T>::lowest() == cuda::std::numeric_limits<T>::lowest() &&
    std::numeric_limits<T>::epsilon() == cuda::std::numeric_limits<T>::epsilon() &&
    std::numeric_limits<T>::infinity() == cuda::std::numeric_limits<T>::infinity() &&
    std::numeric_limits<T>::denorm_min() == cuda::std::numeric_limits<T>::denorm_min() &&
    std::numeric_limits<T>::digits == cuda::std::numeric_limits<T>::digits &&
    std::numeric_limits<T>::digits10 == cuda::std::numeric_limits<T>::digits10;
static_assert(kAgrees<float> && kAgrees<double> && kAgrees<int> && kAgrees<bool>);
static_assert(kAgrees<char> && kAgrees<short> && kAgrees<unsigned> && kAgrees<long long>);
static_assert(std::numeric_limits<float>::max() == FLT_MAX && INFINITY > FLT_MAX && NAN != NAN);
extern "C" __global__ void f(float* y) {
  y[0] = std::sqrt(y[1]) + std::max(y[2], 3.0f) + std::min(1, 2) + std::exp(y[3]);
}
)",
                                                 {});

  INFO(result.log);
  CHECK_FALSE(result.failure);
}

TEST_CASE("NvrtcCompiler knows unasked what nvcc knows unasked", "[cuda]") {
  auto compiler = FindCompiler();
  if (!compiler) return;

  const CompileResult result = compiler->Compile(
      "extern \"C\" __global__ void f(float* y, unsigned n) {\n"
      "  const uint32_t i = min(n, (uint32_t)INT_MAX);\n  assert(i > 0);\n"
      "  y[i] = fmaxf(-INFINITY, -FLT_MAX) + std::numeric_limits<float>::epsilon();\n}",
      {});

  INFO(result.log);
  CHECK_FALSE(result.failure);
}

TEST_CASE("NvrtcCompiler lets a source define what the prelude has", "[cuda]") {
  auto compiler = FindCompiler();
  if (!compiler) return;

  const CompileResult result = compiler->Compile(
      "#define INFINITY __int_as_float(0x7f800000)\ntypedef unsigned long uint64_t;\n"
      "extern \"C\" __global__ void f(float* y) { y[0] = INFINITY + (uint64_t)1; }",
      {});

  INFO(result.log);
  CHECK_FALSE(result.failure);
}

TEST_CASE("NvrtcCompiler builds for Hopper's own instructions", "[cuda]") {
  auto compiler = FindCompiler();
  if (!compiler) return;

  const CompileResult result = compiler->Compile(
      "extern \"C\" __global__ void __launch_bounds__(128, 1) f() {\n"
      "  asm volatile(\"wgmma.fence.sync.aligned;\");\n}",
      {});

  INFO(result.log);
  CHECK_FALSE(result.failure);
}

TEST_CASE("NvrtcCompiler reports the log of a bad source", "[cuda]") {
  auto compiler = FindCompiler();
  if (!compiler) return;

  const CompileResult result = compiler->Compile("__global__ void f() { undeclared = 1; }", {});

  REQUIRE(result.failure);
  CHECK(result.failure->kind == Failure::Kind::kCompile);
  CHECK_THAT(result.failure->diagnostics, Catch::Contains("undeclared"));
}

TEST_CASE("The device's own kernels compile", "[cuda]") {
  auto compiler = FindCompiler();
  if (!compiler) return;

  const CompileResult result = compiler->Compile(CudaDevice::Source(), {});

  INFO(result.log);
  CHECK_FALSE(result.failure);
}

TEST_CASE("NvrtcCompiler says that its library is missing", "[cuda]") {
  const auto compiler =
      NvrtcCompiler::Create({.library = "/nonexistent/libnvrtc.so", .compute_capability = 90});

  CHECK_THAT(compiler.status(), testing::StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/nvrtc_compiler.h"

#include <catch2/catch.hpp>

#include "common/testing/status_matchers.h"
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

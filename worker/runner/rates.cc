// SPDX-License-Identifier: Apache-2.0
#include "worker/runner/rates.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "kernel/program/parser.h"
#include "worker/device/plan_runner.h"

namespace mtmc::worker {
namespace {

// The best of a few: a rate is what the device can do, not what it does on average.
constexpr int kSamples = 5;

// Multiply-adds of one work-item: 64 accumulators (enough to hide the latency of
// a processor's vector units and of a GPU's pipelines), each advanced this often.
constexpr int kAccumulators = 64;
constexpr int kIterations = 2048;

// Both programs: lines that the dialects share.
std::string CopyProgram(bool is_cuda, int64_t elements) {
  const std::string plan = absl::StrCat("//@ input x f32[", elements, "]\n//@ output y f32[",
                                        elements, "]\n//@ launch copy grid=(", elements, " / ");
  if (is_cuda) {
    return absl::StrCat("//@ mtmc 1 cuda\n", plan, R"(1024) block=256 args=(x, y)
extern "C" __global__ void copy(const float* x, float* y) {
  long i = blockIdx.x * 256L + threadIdx.x;
  reinterpret_cast<float4*>(y)[i] = reinterpret_cast<const float4*>(x)[i];
}
)");
  }
  return absl::StrCat("//@ mtmc 1 opencl\n", plan, R"(4096) block=16 args=(x, y)
__kernel void copy(__global const float* x, __global float* y) {
  long first = get_global_id(0) * 16;
  for (int k = 0; k < 16; ++k) vstore16(vload16(first + k, x), first + k, y);
}
)");
}

std::string MultiplyAddProgram(bool is_cuda, int64_t blocks) {
  const std::string plan =
      absl::StrCat("//@ input x f32[64]\n//@ output y f32[", blocks * 256,
                   "]\n//@ launch multiply_add grid=", blocks, " block=256 args=(x, y)\n");
  const std::string body = absl::StrCat(
      "  float a[64];\n  float m = x[1], c = x[2];\n"
      "  for (int k = 0; k < 64; ++k) a[k] = x[k];\n"
      "  for (int i = 0; i < ",
      kIterations,
      "; ++i) {\n"
      "#pragma unroll\n"
      "    for (int k = 0; k < 64; ++k) a[k] = fma(a[k], m, c);\n  }\n"
      "  float sum = 0;\n  for (int k = 0; k < 64; ++k) sum += a[k];\n");
  if (is_cuda) {
    return absl::StrCat("//@ mtmc 1 cuda\n", plan,
                        "extern \"C\" __global__ void multiply_add(const float* x, float* y) {\n",
                        body, "  y[blockIdx.x * 256 + threadIdx.x] = sum;\n}\n");
  }
  // A processor's lanes are those of the vector type, not of its work-items.
  return absl::StrCat("//@ mtmc 1 opencl\n", plan, R"(
__kernel void multiply_add(__global const float* x, __global float* y) {
  float16 a0 = vload16(0, x), a1 = vload16(1, x), a2 = vload16(2, x), a3 = vload16(3, x);
  float16 m = x[1], c = x[2];
  for (int i = 0; i < )",
                      kIterations, R"(; ++i) {
    a0 = fma(a0, m, c);
    a1 = fma(a1, m, c);
    a2 = fma(a2, m, c);
    a3 = fma(a3, m, c);
  }
  a0 += a1 + a2 + a3;
  float8 b = a0.lo + a0.hi;
  float4 d = b.lo + b.hi;
  y[get_global_id(0)] = d.x + d.y + d.z + d.w;
}
)");
}

std::string MatmulProgram(int64_t size) {
  const std::string type = absl::StrCat(" f32[", size, ",", size, "]\n");
  return absl::StrCat("//@ mtmc 1 cuda\n//@ input x", type, "//@ input w", type, "//@ output y",
                      type, "//@ call aten::mm(x, w) -> y precision=tf32\n");
}

// Numbers from 0 to 1: zeros need less power, and let a GPU run faster than it can.
std::vector<std::byte> RandomFloats(int64_t bytes) {
  std::vector<std::byte> result(static_cast<size_t>(bytes));
  uint32_t state = 1;
  for (size_t i = 0; i + sizeof(float) <= result.size(); i += sizeof(float)) {
    state = state * 1664525U + 1013904223U;
    const float value = static_cast<float>(state >> 8) * 0x1p-24F;
    std::memcpy(result.data() + i, &value, sizeof value);
  }
  return result;
}

// Least time of one execution; absent when the program does not run here.
std::optional<double> TimeProgram(Device& device, Library* library, Compiler& compiler,
                                  const std::string& text) {
  auto fail = [&](const std::string& message) -> std::optional<double> {
    base::Log(base::LogLevel::kWarning, "a rate was not measured", {{"reason", message}});
    return std::nullopt;
  };
  const kernel::ParseResult parsed = kernel::ParseProgram(text);
  if (!parsed.program) return fail(kernel::ToText(parsed.diagnostics));
  const CompileResult compiled = compiler.Compile(text, {});
  if (compiled.failure) return fail(compiled.failure->message + "\n" + compiled.log);
  auto plan = PlanRunner::Create(device, library,
                                 {.program = *parsed.program,
                                  .bindings = {},
                                  .binary = compiled.binary,
                                  .allowed_calls = {"aten::mm"}});
  if (!plan.ok()) return fail(plan.failure().message);
  std::map<std::string, std::vector<std::byte>> values;
  std::map<std::string, InputSource, std::less<>> inputs;
  for (const kernel::Tensor& tensor : parsed.program->tensors) {
    if (tensor.role != kernel::Tensor::Role::kInput) continue;
    const std::vector<std::byte>& bytes = values[tensor.name] = RandomFloats(tensor.type.bytes());
    inputs[tensor.name] = std::span<const std::byte>(bytes);
  }
  if (MaybeFailure failure = (*plan)->Execute(inputs)) return fail(failure->message);
  double best = 0;
  for (int i = 0; i < kSamples; ++i) {
    auto sample = (*plan)->Time(/*is_cold=*/false);
    if (!sample.ok()) return fail(sample.failure().message);
    if (i == 0 || sample->seconds < best) best = sample->seconds;
  }
  return best > 0 ? std::optional(best) : std::nullopt;
}

}  // namespace

Rates MeasureRates(Device& device, Library* library, Compiler& compiler) {
  const DeviceFacts& facts = device.facts();
  const bool is_cuda = facts.compute_capability > 0;
  Rates rates;
  // Far beyond any cache, so that memory is what is measured.
  const int64_t elements = is_cuda ? int64_t{1} << 27 : int64_t{1} << 24;
  if (auto seconds = TimeProgram(device, nullptr, compiler, CopyProgram(is_cuda, elements))) {
    rates.memory_bandwidth = 8.0 * static_cast<double>(elements) / *seconds;
  }
  // Eight blocks of 256 threads fill a multiprocessor; a core takes any number.
  const int64_t blocks = is_cuda ? facts.compute_units * 8 * 4 : facts.compute_units * 2;
  if (auto seconds = TimeProgram(device, nullptr, compiler, MultiplyAddProgram(is_cuda, blocks))) {
    rates.fp32 = 2.0 * kAccumulators * kIterations * 256.0 * static_cast<double>(blocks) / *seconds;
  }
  // Tensor cores take TF32 from Ampere on.
  if (is_cuda && library && facts.compute_capability >= 80) {
    constexpr int64_t kSize = 8192;
    if (auto seconds = TimeProgram(device, library, compiler, MatmulProgram(kSize))) {
      rates.tf32 = 2.0 * static_cast<double>(kSize) * kSize * kSize / *seconds;
    }
  }
  return rates;
}

}  // namespace mtmc::worker

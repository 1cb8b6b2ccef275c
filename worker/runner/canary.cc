// SPDX-License-Identifier: Apache-2.0
#include "worker/runner/canary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

constexpr uint32_t kThreads = 256;

// Of every thread: on a GPU 0.1 ms of all multiprocessors.
constexpr int kRounds = 1024;

// A multiprocessor holds eight blocks of 256 threads; twice as many reach each.
constexpr int kBlocksPerUnit = 16;

// Spreads neighbouring numbers over all bits.
constexpr uint32_t kSpread = 2654435761U;

// Every operation has one right result in both languages: integers wrap, products
// by a power of two are exact, and fma rounds once.
constexpr char kCudaHead[] = R"(
#define FMA fmaf
#define BITS __float_as_uint
#define BARRIER __syncthreads()
typedef unsigned int uint;
extern "C" __global__ void canary(const uint* x, uint* y) {
  __shared__ uint tile[256];
  const uint thread = threadIdx.x, block = blockIdx.x;
)";

constexpr char kOpenClHead[] = R"(
#define FMA fma
#define BITS as_uint
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
__kernel void canary(__global const uint* x, __global uint* y) {
  __local uint tile[256];
  const uint thread = get_local_id(0), block = get_group_id(0);
)";

std::string Source(bool is_cuda) {
  return absl::StrCat(is_cuda ? kCudaHead : kOpenClHead, R"(
  uint v = x[thread];
  float f = 1.0f;
  for (int i = 0; i < )",
                      kRounds, R"(; ++i) {
    v = v * 1664525u + 1013904223u;
    f = FMA(f, 0.75f, (float)(v >> 8) * 0x1p-24f);
  }
  tile[thread] = v ^ BITS(f);
  BARRIER;
  y[block * 256u + thread] = tile[255u - thread] ^ (block * )",
                      kSpread, R"(u);
}
)");
}

uint32_t Expect(uint32_t v) {
  float f = 1.0F;
  for (int i = 0; i < kRounds; ++i) {
    v = v * 1664525U + 1013904223U;
    f = std::fma(f, 0.75F, static_cast<float>(v >> 8) * 0x1p-24F);
  }
  return v ^ std::bit_cast<uint32_t>(f);
}

std::string Describe(const Failure& failure) {
  return failure.diagnostics.empty() ? failure.message
                                     : absl::StrCat(failure.message, ": ", failure.diagnostics);
}

}  // namespace

Canary::Canary(Device& device, ReadEvents read_events)
    : device_(device),
      read_events_(std::move(read_events)),
      blocks_(int64_t{kBlocksPerUnit} * std::max(device.facts().compute_units, 1)) {
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    inputs_.push_back(thread * kSpread);
    expected_.push_back(Expect((kThreads - 1 - thread) * kSpread));
  }
}

absl::StatusOr<std::unique_ptr<Canary>> Canary::Create(Device& device, Compiler& compiler,
                                                       ReadEvents read_events) {
  std::unique_ptr<Canary> canary(new Canary(device, std::move(read_events)));
  MTMC_RETURN_IF_ERROR(canary->Build(compiler));
  // The first launch loads the kernel, or even compiles it, which a call that waits
  // for a canary must not pay for.
  const std::string fault = canary->Compute();
  if (!fault.empty()) return absl::InternalError(absl::StrCat("the canary fails: ", fault));
  return canary;
}

absl::Status Canary::Build(Compiler& compiler) {
  const bool is_cuda = device_.facts().compute_capability > 0;
  const CompileResult compiled = compiler.Compile(Source(is_cuda), {});
  if (compiled.failure) {
    return absl::InternalError(
        absl::StrCat("the canary: ", compiled.failure->message, "\n", compiled.log));
  }
  auto module = device_.Load(compiled.binary);
  if (!module.ok()) {
    return absl::InternalError(absl::StrCat("the canary: ", Describe(module.failure())));
  }
  module_ = *std::move(module);
  kernel_ = module_->Find("canary");
  return kernel_ ? absl::OkStatus() : absl::InternalError("the canary's binary has no kernel");
}

Canary::Result Canary::Run() {
  Result result;
  result.fault = Compute();
  // After the computation, which may be what brings them about.
  for (DeviceEvent& event : read_events_()) {
    if (event.is_fault && result.fault.empty()) result.fault = event.text;
    result.events.push_back(std::move(event.text));
  }
  return result;
}

std::string Canary::Compute() {
  std::vector<uint32_t> results(static_cast<size_t>(blocks_) * kThreads);
  if (const MaybeFailure failure = Execute(results)) return Describe(*failure);
  for (size_t i = 0; i < results.size(); ++i) {
    const uint32_t block = static_cast<uint32_t>(i / kThreads);
    const uint32_t expected = expected_[i % kThreads] ^ (block * kSpread);
    if (results[i] == expected) continue;
    return absl::StrCat("computed ", absl::Hex(results[i]), " where ", absl::Hex(expected),
                        " is right, at ", i);
  }
  return "";
}

MaybeFailure Canary::Execute(std::vector<uint32_t>& results) {
  auto x = device_.Allocate(int64_t{kThreads} * 4);
  if (!x.ok()) return x.failure();
  auto y = device_.Allocate(blocks_ * kThreads * 4);
  if (!y.ok()) return y.failure();
  if (auto failure = (*x)->Upload(std::as_bytes(std::span(inputs_)))) return failure;
  if (auto failure = (*y)->Fill(0xFF)) return failure;
  if (auto failure = device_.Enqueue({.kernel = kernel_,
                                      .grid = {blocks_, 1, 1},
                                      .block = {kThreads, 1, 1},
                                      .arguments = {x->get(), y->get()}})) {
    return failure;
  }
  if (auto failure = device_.Synchronize()) return failure;
  return (*y)->Download(std::as_writable_bytes(std::span(results)));
}

}  // namespace mtmc::worker

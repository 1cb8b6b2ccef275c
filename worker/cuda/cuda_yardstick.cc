// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_yardstick.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

// As `mtmc_reference/yardstick.py` has them.
constexpr unsigned kBlocks = 256;
constexpr unsigned kThreads = 256;
constexpr size_t kBytes = size_t{kBlocks} * kThreads * sizeof(float);
// Among 128 pages of 2 MiB a place is drawn, or among a 64th of the device's memory where
// that is less.
constexpr size_t kMostArenaBytes = size_t{256} << 20;
constexpr size_t kMemoryShare = 64;
constexpr size_t kAlignment = 512;

}  // namespace

CudaYardstick::CudaYardstick(std::shared_ptr<const CudaContext> context, size_t arena_bytes)
    : context_(std::move(context)), arena_bytes_(arena_bytes), random_(std::random_device()()) {}

CudaYardstick::~CudaYardstick() {
  if (arena_) context_->api().cuMemFree(arena_);
  if (module_) context_->api().cuModuleUnload(module_);
}

absl::StatusOr<std::unique_ptr<CudaYardstick>> CudaYardstick::Create(
    std::shared_ptr<const CudaContext> context, const std::string& binary,
    const DeviceFacts& facts) {
  const size_t share = static_cast<size_t>(facts.memory_bytes) / kMemoryShare;
  std::unique_ptr<CudaYardstick> yardstick(
      new CudaYardstick(std::move(context), std::min(kMostArenaBytes, share)));
  MTMC_RETURN_IF_ERROR(yardstick->context_->LoadKernels(
      binary, {{&yardstick->kernel_, "mtmc_yardstick"}}, yardstick->module_));
  return yardstick;
}

bool CudaYardstick::Reserve() {
  const CudaApi& api = context_->api();
  if (arena_) return true;
  if (api.cuMemAlloc(&arena_, arena_bytes_) != CUDA_SUCCESS) return false;
  return api.cuMemsetD8Async(arena_, 0, arena_bytes_, context_->stream()) == CUDA_SUCCESS;
}

MaybeFailure CudaYardstick::Enqueue() {
  // One in the first half, one in the second.
  const size_t half = arena_bytes_ / 2 / kAlignment * kAlignment;
  std::uniform_int_distribution<size_t> draw(0, (half - kBytes) / kAlignment);
  CUdeviceptr x = arena_ + draw(random_) * kAlignment;
  CUdeviceptr y = arena_ + half + draw(random_) * kAlignment;
  void* arguments[] = {&x, &y};
  const CUresult error = context_->api().cuLaunchKernel(kernel_, kBlocks, 1, 1, kThreads, 1, 1, 0,
                                                        context_->stream(), arguments, nullptr);
  if (error != CUDA_SUCCESS) return CudaFailure(context_->api(), error, "the yardstick");
  return std::nullopt;
}

}  // namespace mtmc::worker

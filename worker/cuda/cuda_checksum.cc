// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_checksum.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

// Each word is mixed with its position by an invertible function, and the sum is
// taken in any order: one changed word always changes the sum.
constexpr char kSource[] = R"(
typedef unsigned long long word;

__device__ word mix(word value, word position) {
  word x = (value ^ (position * 0x9e3779b97f4a7c15ull)) + position;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
  return x ^ (x >> 32);
}

extern "C" __global__ void checksum(const unsigned char* data, word bytes, word* result) {
  const word words = bytes / 8;
  const word threads = (word)gridDim.x * blockDim.x;
  const word thread = (word)blockIdx.x * blockDim.x + threadIdx.x;
  const word* aligned = (const word*)data;
  word sum = 0;
  for (word i = thread; i < words; i += threads) sum += mix(aligned[i], i + 1);
  if (thread < bytes % 8) sum += mix(data[words * 8 + thread], ~thread);
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x % 32 == 0) atomicAdd(result, sum);
}
)";

constexpr unsigned kThreads = 256;
// Enough blocks to fill any GPU; each takes at least 16 KiB.
constexpr int64_t kMaxBlocks = 2048;
constexpr int64_t kBytesPerBlock = int64_t{16} << 10;

}  // namespace

CudaChecksum::CudaChecksum(std::shared_ptr<const CudaContext> context)
    : context_(std::move(context)) {}

CudaChecksum::~CudaChecksum() {
  if (result_) context_->api().cuMemFree(result_);
  if (module_) context_->api().cuModuleUnload(module_);
}

const char* CudaChecksum::Source() { return kSource; }

absl::StatusOr<std::shared_ptr<const CudaChecksum>> CudaChecksum::Create(
    std::shared_ptr<const CudaContext> context, const std::string& binary) {
  const CudaApi& api = context->api();
  std::shared_ptr<CudaChecksum> checksum(new CudaChecksum(std::move(context)));
  MTMC_RETURN_IF_ERROR(
      CudaStatus(api, api.cuModuleLoadData(&checksum->module_, binary.data()), "cuModuleLoadData"));
  MTMC_RETURN_IF_ERROR(
      CudaStatus(api, api.cuModuleGetFunction(&checksum->kernel_, checksum->module_, "checksum"),
                 "cuModuleGetFunction"));
  MTMC_RETURN_IF_ERROR(
      CudaStatus(api, api.cuMemAlloc(&checksum->result_, sizeof(uint64_t)), "cuMemAlloc"));
  return checksum;
}

Outcome<uint64_t> CudaChecksum::Of(CUdeviceptr address, int64_t bytes) const {
  const CudaApi& api = context_->api();
  CUstream stream = context_->stream();
  auto num_bytes = static_cast<uint64_t>(bytes);
  CUdeviceptr result = result_;
  void* arguments[] = {&address, &num_bytes, &result};
  const auto blocks =
      static_cast<unsigned>(std::clamp<int64_t>(bytes / kBytesPerBlock, int64_t{1}, kMaxBlocks));
  uint64_t sum = 0;
  CUresult error = api.cuMemsetD8Async(result_, 0, sizeof sum, stream);
  if (error == CUDA_SUCCESS) {
    error =
        api.cuLaunchKernel(kernel_, blocks, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr);
  }
  if (error == CUDA_SUCCESS) error = api.cuMemcpyDtoHAsync(&sum, result_, sizeof sum, stream);
  if (error != CUDA_SUCCESS) return CudaFailure(api, error, "the checksum kernel");
  if (MaybeFailure failure = context_->Synchronize()) return *std::move(failure);
  return sum ^ num_bytes;
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace mtmc::worker {
namespace {

// Nothing of a candidate may be left for the next one.
constexpr uint8_t kFreed = 0xDD;

}  // namespace

CudaMemory::CudaMemory(std::shared_ptr<const CudaContext> context, int64_t most_kept_bytes)
    : context_(std::move(context)), most_kept_bytes_(most_kept_bytes) {}

CudaMemory::~CudaMemory() { ReturnAll(); }

Outcome<CUdeviceptr> CudaMemory::Allocate(int64_t bytes) {
  if (auto kept = kept_.find(bytes); kept != kept_.end()) {
    const CUdeviceptr address = kept->second;
    kept_.erase(kept);
    kept_bytes_ -= bytes;
    return address;
  }
  const CudaApi& api = context_->api();
  CUdeviceptr address = 0;
  CUresult error = api.cuMemAlloc(&address, static_cast<size_t>(bytes));
  if (error == CUDA_ERROR_OUT_OF_MEMORY && !kept_.empty()) {
    ReturnAll();
    error = api.cuMemAlloc(&address, static_cast<size_t>(bytes));
  }
  if (error == CUDA_SUCCESS) return address;
  return CudaFailure(api, error, absl::StrCat("an allocation of ", bytes, " bytes"));
}

void CudaMemory::Free(CUdeviceptr address, int64_t bytes) {
  const CudaApi& api = context_->api();
  const bool is_kept = kept_bytes_ + bytes <= most_kept_bytes_ &&
                       api.cuMemsetD8Async(address, kFreed, static_cast<size_t>(bytes),
                                           context_->stream()) == CUDA_SUCCESS;
  if (!is_kept) {
    api.cuMemFree(address);
    return;
  }
  kept_.emplace(bytes, address);
  kept_bytes_ += bytes;
}

void CudaMemory::ReturnAll() {
  for (const auto& [bytes, address] : kept_) context_->api().cuMemFree(address);
  kept_.clear();
  kept_bytes_ = 0;
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_conditions.h"

#include <random>
#include <utility>

#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

// `volatile` keeps stores that nothing reads. A block of scrub_shared takes all
// shared memory that a block can have, so each multiprocessor gets one of them.
constexpr char kSource[] = R"(
extern "C" __global__ void mtmc_scrub_shared(unsigned value) {
  extern __shared__ volatile unsigned mtmc_words[];
  unsigned bytes;
  asm("mov.u32 %0, %dynamic_smem_size;" : "=r"(bytes));
  for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x) mtmc_words[i] = value ^ i;
}

extern "C" __global__ void mtmc_scrub_local(unsigned value) {
  volatile unsigned stack[128];
  for (unsigned i = 0; i < 128; ++i) stack[(i + value) % 128] = value ^ i;
}

extern "C" __global__ void mtmc_occupy(unsigned long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}
)";

constexpr unsigned kThreads = 1024;
// Two blocks of that size fill a multiprocessor's 2,048 thread slots.
constexpr unsigned kBlocksPerMultiprocessor = 2;

}  // namespace

CudaConditions::CudaConditions(std::shared_ptr<const CudaContext> context, const DeviceFacts& facts)
    : context_(std::move(context)),
      multiprocessors_(static_cast<unsigned>(facts.compute_units)),
      shared_bytes_(facts.shared_memory_per_block_bytes),
      turn_(std::random_device()()) {}

CudaConditions::~CudaConditions() {
  if (load_stream_) context_->api().cuStreamDestroy(load_stream_);
  if (module_) context_->api().cuModuleUnload(module_);
}

const char* CudaConditions::Source() { return kSource; }

absl::StatusOr<std::unique_ptr<CudaConditions>> CudaConditions::Create(
    std::shared_ptr<const CudaContext> context, const std::string& binary,
    const DeviceFacts& facts) {
  std::unique_ptr<CudaConditions> conditions(new CudaConditions(std::move(context), facts));
  MTMC_RETURN_IF_ERROR(conditions->Prepare(binary));
  return conditions;
}

absl::Status CudaConditions::Prepare(const std::string& binary) {
  const CudaApi& api = context_->api();
  MTMC_RETURN_IF_ERROR(context_->LoadKernels(binary,
                                             {{&scrub_shared_, "mtmc_scrub_shared"},
                                              {&scrub_local_, "mtmc_scrub_local"},
                                              {&occupy_, "mtmc_occupy"}},
                                             module_));
  for (CUfunction function : {scrub_shared_, occupy_}) {
    MTMC_RETURN_IF_ERROR(
        CudaStatus(api,
                   api.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          static_cast<int>(shared_bytes_)),
                   "cuFuncSetAttribute"));
  }
  // No part of L2 may be set aside. Refused under MIG, where there is none to set.
  api.cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0);
  return CudaStatus(api, api.cuStreamCreate(&load_stream_, CU_STREAM_NON_BLOCKING),
                    "cuStreamCreate");
}

CUresult CudaConditions::Launch(CUfunction kernel, unsigned blocks, unsigned threads,
                                int64_t shared_bytes, CUstream stream, void** arguments) const {
  return context_->api().cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1,
                                        static_cast<unsigned>(shared_bytes), stream, arguments,
                                        nullptr);
}

MaybeFailure CudaConditions::Scrub() {
  uint32_t value = turn_++;
  void* arguments[] = {&value};
  CUresult error = Launch(scrub_local_, kBlocksPerMultiprocessor * multiprocessors_, kThreads, 0,
                          context_->stream(), arguments);
  if (error == CUDA_SUCCESS) {
    error = Launch(scrub_shared_, multiprocessors_, kThreads, shared_bytes_, context_->stream(),
                   arguments);
  }
  if (error != CUDA_SUCCESS) return CudaFailure(context_->api(), error, "the scrub kernel");
  return std::nullopt;
}

void CudaConditions::ReleasePersistingLines() const {
  context_->api().cuCtxResetPersistingL2Cache();
}

MaybeFailure CudaConditions::StartLoad(double seconds) {
  auto nanoseconds = static_cast<uint64_t>(seconds * 1e9);
  void* arguments[] = {&nanoseconds};
  // Between a quarter and three quarters of the multiprocessors.
  const unsigned blocks = multiprocessors_ / 4 + turn_++ % (multiprocessors_ / 2 + 1) + 1;
  const CUresult error =
      Launch(occupy_, blocks, kThreads, shared_bytes_ / 2, load_stream_, arguments);
  if (error != CUDA_SUCCESS) return CudaFailure(context_->api(), error, "the load kernel");
  return std::nullopt;
}

}  // namespace mtmc::worker

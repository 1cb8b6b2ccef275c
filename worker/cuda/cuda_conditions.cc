// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_conditions.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/device/random_fill.h"

namespace mtmc::worker {
namespace {

// `volatile` keeps stores that nothing reads, and an index that the compiler does not know
// keeps the stack in memory. A block of scrub_shared takes all
// shared memory that a block can have, so each multiprocessor gets one of them. Blocks that
// meet give up after 100 us, where somebody else holds a part of the device.
constexpr char kSource[] = R"(
__device__ __forceinline__ unsigned long long mtmc_time() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__device__ void mtmc_meet(unsigned* arrived, unsigned all) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    const unsigned long long start = mtmc_time();
    while ((int)(*(volatile unsigned*)arrived - all) < 0 && mtmc_time() - start < 100000) {
    }
  }
  __syncthreads();
}

extern "C" __global__ void mtmc_scrub_shared(unsigned long long seed, unsigned* arrived,
                                             unsigned all) {
  extern __shared__ volatile unsigned mtmc_words[];
  unsigned bytes;
  asm("mov.u32 %0, %dynamic_smem_size;" : "=r"(bytes));
  mtmc_meet(arrived, all);
  const unsigned long long stream = RandomWord(seed, blockIdx.x);
  for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x) {
    mtmc_words[i] = (unsigned)RandomWord(stream, i);
  }
}

#define MTMC_SCRUB_LOCAL(BYTES)                                                               \
  extern "C" __global__ void __launch_bounds__(512, 2) mtmc_scrub_local_##BYTES(              \
      unsigned long long seed, unsigned* arrived, unsigned all) {                             \
    volatile unsigned stack[BYTES / 4];                                                       \
    mtmc_meet(arrived, all);                                                                  \
    const unsigned long long stream = RandomWord(seed, blockIdx.x * blockDim.x + threadIdx.x); \
    for (unsigned i = 0; i < BYTES / 4; ++i) stack[(i + all) % (BYTES / 4)] = (unsigned)RandomWord(stream, i); \
  }

MTMC_LOCAL_SIZES(MTMC_SCRUB_LOCAL)

extern "C" __global__ void mtmc_occupy(unsigned long long nanoseconds, const unsigned* num_ended,
                                       unsigned turn) {
  if (threadIdx.x == 0) {
    const unsigned long long start = mtmc_time();
    while (mtmc_time() - start < nanoseconds && (int)(*(volatile const unsigned*)num_ended - turn) < 0) {
    }
  }
  __syncthreads();
}

extern "C" __global__ void mtmc_delay(unsigned long long nanoseconds) {
  const unsigned long long start = mtmc_time();
  while (mtmc_time() - start < nanoseconds) {
  }
}
)";

// Local memory that a scrub has for a thread: each twice as much as the one before, up to what
// a thread can have (512 KiB, some of which is the system's).
#define MTMC_LOCAL_SIZES(F) \
  F(512) F(1024) F(2048) F(4096) F(8192) F(16384) F(32768) F(65536) F(131072) F(262144) F(516096)

#define MTMC_SIZE_TEXT(bytes) "F(" #bytes ") "
#define MTMC_SIZE(bytes) bytes,

constexpr char kLocalSizes[] = "#define MTMC_LOCAL_SIZES(F) " MTMC_LOCAL_SIZES(MTMC_SIZE_TEXT);
constexpr int kLocalBytes[] = {MTMC_LOCAL_SIZES(MTMC_SIZE)};

constexpr unsigned kThreads = 1024;
// Of a block that scrubs local memory: divides what the multiprocessor of any GPU holds.
constexpr unsigned kLocalThreads = 512;

// Of a block that only takes the place of one.
constexpr unsigned kSmallThreads = 32;

// How long a load takes to begin: the first one must have its multiprocessors before the next
// one comes.
constexpr std::chrono::microseconds kLoadStart{50};

// Random numbers from `least` to `most`.
unsigned Draw(unsigned least, unsigned most) {
  return least + static_cast<unsigned>((DrawSeed() >> 1) % (most - least + 1));
}

}  // namespace

CudaConditions::CudaConditions(std::shared_ptr<const CudaContext> context, const DeviceFacts& facts)
    : context_(std::move(context)),
      multiprocessors_(static_cast<unsigned>(facts.compute_units)),
      limits_(context_->ReadLimits()),
      shared_bytes_(facts.shared_memory_per_block_bytes) {}

CudaConditions::~CudaConditions() {
  if (counters_) context_->api().cuMemFree(counters_);
  for (CUstream stream : load_streams_) {
    if (stream) context_->api().cuStreamDestroy(stream);
  }
  if (module_) context_->api().cuModuleUnload(module_);
}

std::string CudaConditions::Source() { return absl::StrCat(kLocalSizes, "\n", kSource); }

absl::StatusOr<std::unique_ptr<CudaConditions>> CudaConditions::Create(
    std::shared_ptr<const CudaContext> context, const std::string& binary,
    const DeviceFacts& facts) {
  std::unique_ptr<CudaConditions> conditions(new CudaConditions(std::move(context), facts));
  MTMC_RETURN_IF_ERROR(conditions->Prepare(binary));
  return conditions;
}

absl::Status CudaConditions::Prepare(const std::string& binary) {
  const CudaApi& api = context_->api();
  MTMC_RETURN_IF_ERROR(context_->LoadKernels(
      binary,
      {{&scrub_shared_, "mtmc_scrub_shared"}, {&occupy_, "mtmc_occupy"}, {&delay_, "mtmc_delay"}},
      module_));
  constexpr size_t kCounterBytes = 2 * sizeof(uint32_t);
  MTMC_RETURN_IF_ERROR(CudaStatus(api, api.cuMemAlloc(&counters_, kCounterBytes), "cuMemAlloc"));
  MTMC_RETURN_IF_ERROR(
      CudaStatus(api, api.cuMemsetD8Async(counters_, 0, kCounterBytes, context_->stream()),
                 "cuMemsetD8Async"));
  for (CUfunction function : {scrub_shared_, occupy_}) {
    MTMC_RETURN_IF_ERROR(
        CudaStatus(api,
                   api.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          static_cast<int>(shared_bytes_)),
                   "cuFuncSetAttribute"));
  }
  // No part of L2 may be set aside. Refused under MIG, where there is none to set.
  api.cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0);
  for (CUstream& stream : load_streams_) {
    MTMC_RETURN_IF_ERROR(
        CudaStatus(api, api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  }
  return absl::OkStatus();
}

CUresult CudaConditions::Launch(CUfunction kernel, unsigned blocks, unsigned threads,
                                int64_t shared_bytes, CUstream stream, void** arguments) const {
  return context_->api().cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1,
                                        static_cast<unsigned>(shared_bytes), stream, arguments,
                                        nullptr);
}

CUresult CudaConditions::LaunchScrub(CUfunction kernel, unsigned blocks, unsigned threads,
                                     int64_t shared_bytes) {
  uint64_t seed = DrawSeed();
  CUdeviceptr arrived = counters_;
  uint32_t all = num_scrub_blocks_ += blocks;
  void* arguments[] = {&seed, &arrived, &all};
  return Launch(kernel, blocks, threads, shared_bytes, context_->stream(), arguments);
}

// Slots of threads lie behind one another, each as large as the kernel's own need or a larger
// one's, so that more than enough covers both.
CUfunction CudaConditions::FindLocalScrub() {
  const auto* bytes =
      std::lower_bound(std::begin(kLocalBytes), std::end(kLocalBytes), local_bytes_);
  if (bytes == std::end(kLocalBytes)) --bytes;
  CUfunction& kernel = scrub_local_[*bytes];
  if (!kernel) {
    const std::string name = absl::StrCat("mtmc_scrub_local_", *bytes);
    context_->api().cuModuleGetFunction(&kernel, module_, name.c_str());
  }
  return kernel;
}

MaybeFailure CudaConditions::Scrub() {
  const unsigned threads = multiprocessors_ * static_cast<unsigned>(limits_.max_threads);
  CUresult error = LaunchScrub(FindLocalScrub(), threads / kLocalThreads, kLocalThreads, 0);
  if (error == CUDA_SUCCESS) {
    error = LaunchScrub(scrub_shared_, multiprocessors_, kThreads, shared_bytes_);
  }
  if (error != CUDA_SUCCESS) return CudaFailure(context_->api(), error, "the scrub kernel");
  return std::nullopt;
}

void CudaConditions::ReleasePersistingLines() const {
  context_->api().cuCtxResetPersistingL2Cache();
}

CUresult CudaConditions::LaunchLoad(unsigned blocks, unsigned threads, int64_t shared_bytes,
                                    CUstream stream) {
  if (blocks == 0) return CUDA_SUCCESS;
  auto nanoseconds = static_cast<uint64_t>(kMostLoadSeconds * 1e9);
  CUdeviceptr num_ended = counters_ + sizeof(uint32_t);
  uint32_t turn = num_loads_;
  void* arguments[] = {&nanoseconds, &num_ended, &turn};
  const CUresult error = Launch(occupy_, blocks, threads, shared_bytes, stream, arguments);
  const auto end = std::chrono::steady_clock::now() + kLoadStart;
  while (std::chrono::steady_clock::now() < end) {
  }
  return error;
}

MaybeFailure CudaConditions::StartLoad() {
  ++num_loads_;
  CUresult error = CUDA_SUCCESS;
  const unsigned most = multiprocessors_ - 1;
  const unsigned draw = Draw(0, 5);
  if (draw == 0) {
    const unsigned blocks = Draw(multiprocessors_ / 4 + 1, multiprocessors_ - multiprocessors_ / 4);
    error = LaunchLoad(blocks, kThreads, shared_bytes_ / 2, load_streams_[0]);
  } else if (draw == 1) {
    const unsigned free = Draw(1, multiprocessors_ / 4 + 1);
    error = LaunchLoad(multiprocessors_ - std::min(multiprocessors_, free), kThreads, shared_bytes_,
                       load_streams_[0]);
  } else {
    error = LaunchLoad(most, kThreads, shared_bytes_, load_streams_[0]);
    // In the one that is left, all blocks but one; or none, for blocks that need all of it.
    const auto slots = static_cast<unsigned>(std::max(limits_.max_blocks, 1));
    if (error == CUDA_SUCCESS && draw > 2) {
      error = LaunchLoad(slots - 1, kSmallThreads, 0, load_streams_[1]);
    }
  }
  if (error != CUDA_SUCCESS) return CudaFailure(context_->api(), error, "the load kernel");
  return std::nullopt;
}

MaybeFailure CudaConditions::EndLoad() {
  const CUresult error = context_->api().cuMemsetD32Async(counters_ + sizeof(uint32_t), num_loads_,
                                                          1, context_->stream());
  if (error != CUDA_SUCCESS) return CudaFailure(context_->api(), error, "cuMemsetD32Async");
  return std::nullopt;
}

MaybeFailure CudaConditions::Delay(double seconds) {
  auto nanoseconds = static_cast<uint64_t>(seconds * 1e9);
  void* arguments[] = {&nanoseconds};
  const CUresult error = Launch(delay_, 1, 1, 0, context_->stream(), arguments);
  if (error != CUDA_SUCCESS) return CudaFailure(context_->api(), error, "the delay kernel");
  return std::nullopt;
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_fill.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

// What one launch does. It is the kernel's parameter, of which there may be 4 KiB; blocks of
// the grid belong to the tasks in order.
MTMC_DEFINE_AND_QUOTE(
    kBatchText,

    struct FillBatch {
      RandomFill fills[48];
      unsigned long long counters[48];
      unsigned first_blocks[49];
      unsigned num_fills;
    };)

static_assert(sizeof(FillBatch) <= 4096);
constexpr size_t kMostTasks = std::size(FillBatch{}.fills);

constexpr char kDefinitions[] = "\n#define MTMC_SHARED __device__ __forceinline__\n";

constexpr char kKernel[] = R"(
extern "C" __global__ void mtmc_fill(const FillBatch batch) {
  unsigned task = 0;
  while (task + 1 < batch.num_fills && batch.first_blocks[task + 1] <= blockIdx.x) ++task;
  const RandomFill fill = batch.fills[task];
  const unsigned first = batch.first_blocks[task];
  const unsigned long long threads =
      (unsigned long long)(batch.first_blocks[task + 1] - first) * blockDim.x;
  const unsigned long long count = CountVisited(fill);
  unsigned long long wrong = 0;
  for (unsigned long long i = (unsigned long long)(blockIdx.x - first) * blockDim.x + threadIdx.x;
       i < count; i += threads) {
    wrong += FillChunk(fill, VisitedChunk(fill, i));
  }
  if (wrong) atomicAdd((unsigned long long*)batch.counters[task], wrong);
}
)";

constexpr unsigned kThreads = 256;
// Enough blocks to fill any GPU; each thread writes some chunks.
constexpr uint64_t kMaxBlocks = 2048;
constexpr uint64_t kChunksPerThread = 4;

}  // namespace

CudaFill::CudaFill(std::shared_ptr<const CudaContext> context) : context_(std::move(context)) {}

CudaFill::~CudaFill() {
  if (module_) context_->api().cuModuleUnload(module_);
}

std::string CudaFill::Source() {
  return absl::StrCat(kDefinitions, kRandomFillText, "\n", kBatchText, kKernel);
}

absl::StatusOr<std::unique_ptr<CudaFill>> CudaFill::Create(
    std::shared_ptr<const CudaContext> context, const std::string& binary) {
  std::unique_ptr<CudaFill> fill(new CudaFill(std::move(context)));
  MTMC_RETURN_IF_ERROR(
      fill->context_->LoadKernels(binary, {{&fill->kernel_, "mtmc_fill"}}, fill->module_));
  return fill;
}

CUresult CudaFill::Enqueue(std::span<const Task> tasks) const {
  CUresult error = CUDA_SUCCESS;
  while (!tasks.empty() && error == CUDA_SUCCESS) {
    const size_t count = std::min(tasks.size(), kMostTasks);
    error = EnqueueBatch(tasks.first(count));
    tasks = tasks.subspan(count);
  }
  return error;
}

CUresult CudaFill::EnqueueBatch(std::span<const Task> tasks) const {
  FillBatch batch{};
  batch.num_fills = static_cast<unsigned>(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    batch.fills[i] = tasks[i].fill;
    batch.counters[i] = tasks[i].counter;
    const uint64_t blocks = CountVisited(tasks[i].fill) / (kThreads * kChunksPerThread);
    batch.first_blocks[i + 1] =
        batch.first_blocks[i] + static_cast<unsigned>(std::clamp(blocks, uint64_t{1}, kMaxBlocks));
  }
  void* arguments[] = {&batch};
  return context_->api().cuLaunchKernel(kernel_, batch.first_blocks[tasks.size()], 1, 1, kThreads,
                                        1, 1, 0, context_->stream(), arguments, nullptr);
}

}  // namespace mtmc::worker

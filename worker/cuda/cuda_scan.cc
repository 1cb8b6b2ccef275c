// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_scan.h"

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

extern "C" __global__ void mtmc_checksum(const unsigned char* data, word bytes, word* result) {
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
// Enough blocks to fill any GPU; each takes at least 16 KiB of a sum.
constexpr int64_t kMaxBlocks = 2048;
constexpr int64_t kBytesPerBlock = int64_t{16} << 10;

}  // namespace

CudaScan::CudaScan(std::shared_ptr<const CudaContext> context) : context_(std::move(context)) {}

CudaScan::~CudaScan() {
  const CudaApi& api = context_->api();
  if (fetched_) api.cuMemFreeHost(fetched_);
  if (results_) api.cuMemFree(results_);
  if (module_) api.cuModuleUnload(module_);
}

std::string CudaScan::Source() { return CudaFill::Source() + kSource; }

absl::StatusOr<std::unique_ptr<CudaScan>> CudaScan::Create(
    std::shared_ptr<const CudaContext> context, const std::string& binary) {
  std::unique_ptr<CudaScan> scan(new CudaScan(std::move(context)));
  MTMC_RETURN_IF_ERROR(scan->Prepare(binary));
  return scan;
}

absl::Status CudaScan::Prepare(const std::string& binary) {
  const CudaApi& api = context_->api();
  MTMC_ASSIGN_OR_RETURN(fill_, CudaFill::Create(context_, binary));
  MTMC_RETURN_IF_ERROR(context_->LoadKernels(binary, {{&checksum_, "mtmc_checksum"}}, module_));
  constexpr size_t kBytes = (1 + kMostAnswers) * sizeof *fetched_;
  MTMC_RETURN_IF_ERROR(CudaStatus(api, api.cuMemAlloc(&results_, kBytes), "cuMemAlloc"));
  MTMC_RETURN_IF_ERROR(CudaStatus(api, api.cuMemsetD8Async(results_, 0, kBytes, context_->stream()),
                                  "cuMemsetD8Async"));
  void* fetched = nullptr;
  MTMC_RETURN_IF_ERROR(CudaStatus(api, api.cuMemAllocHost(&fetched, kBytes), "cuMemAllocHost"));
  fetched_ = static_cast<uint64_t*>(fetched);
  return absl::OkStatus();
}

CUresult CudaScan::Enqueue(std::span<const Question> questions, CUdeviceptr result) const {
  std::vector<CudaFill::Task> tasks;
  CUresult error = CUDA_SUCCESS;
  for (const Question& question : questions) {
    if (question.kind == Question::Kind::kWrongWords) {
      tasks.push_back({.fill = question.fill, .counter = result});
    } else if (error == CUDA_SUCCESS) {
      const int64_t blocks = std::clamp(question.bytes / kBytesPerBlock, int64_t{1}, kMaxBlocks);
      CUdeviceptr address = question.address;
      auto bytes = static_cast<uint64_t>(question.bytes);
      void* arguments[] = {&address, &bytes, &result};
      error =
          context_->api().cuLaunchKernel(checksum_, static_cast<unsigned>(blocks), 1, 1, kThreads,
                                         1, 1, 0, context_->stream(), arguments, nullptr);
    }
    result += sizeof *fetched_;
  }
  return error == CUDA_SUCCESS ? fill_->Enqueue(tasks) : error;
}

MaybeFailure CudaScan::Fill(std::span<const RandomFill> fills) {
  std::vector<CudaFill::Task> tasks;
  for (const RandomFill& fill : fills) tasks.push_back({.fill = fill, .counter = results_});
  const CUresult error = fill_->Enqueue(tasks);
  if (error != CUDA_SUCCESS) return CudaFailure(context_->api(), error, "a fill of memory");
  return std::nullopt;
}

Outcome<std::vector<uint64_t>> CudaScan::Ask(std::span<const Question> questions) {
  const CudaApi& api = context_->api();
  CUstream stream = context_->stream();
  const CUdeviceptr first = results_ + sizeof *fetched_;
  std::vector<uint64_t> answers;
  while (answers.size() < questions.size()) {
    const auto batch = questions.subspan(answers.size(),
                                         std::min(kMostAnswers, questions.size() - answers.size()));
    const size_t bytes = batch.size() * sizeof *fetched_;
    CUresult error = api.cuMemsetD8Async(first, 0, bytes, stream);
    if (error == CUDA_SUCCESS) error = Enqueue(batch, first);
    if (error == CUDA_SUCCESS) {
      error = api.cuMemcpyDtoHAsync(fetched_, results_, bytes + sizeof *fetched_, stream);
    }
    if (error != CUDA_SUCCESS) return CudaFailure(api, error, "a scan of memory");
    if (MaybeFailure failure = context_->Synchronize()) return *std::move(failure);
    for (size_t i = 0; i < batch.size(); ++i) {
      const bool is_checksum = batch[i].kind == Question::Kind::kChecksum;
      answers.push_back(fetched_[1 + i] ^
                        (is_checksum ? static_cast<uint64_t>(batch[i].bytes) : 0));
    }
    if (fetched_[0] == 0) continue;
    DropStrays();
    has_strays_ = true;
  }
  return answers;
}

bool CudaScan::TakeStrays() { return std::exchange(has_strays_, false); }

void CudaScan::DropStrays() {
  has_strays_ = false;
  context_->api().cuMemsetD8Async(results_, 0, sizeof *fetched_, context_->stream());
}

Outcome<uint64_t> CudaScan::Checksum(CUdeviceptr address, int64_t bytes) {
  const Question question{.kind = Question::Kind::kChecksum, .address = address, .bytes = bytes};
  auto answers = Ask({&question, 1});
  if (!answers.ok()) return answers.failure();
  return answers->front();
}

}  // namespace mtmc::worker

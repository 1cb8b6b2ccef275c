// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cupti_activity.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

// A kernel's record takes 200 bytes; a megabyte holds those of 5,000, more than
// any step has.
constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kBufferAlignment = 8;

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

// Start and end of what the device did, in nanoseconds.
using Span = std::pair<uint64_t, uint64_t>;

double ToSeconds(Span span) { return static_cast<double>(span.second - span.first) * 1e-9; }

// While at least one of them went on: a library may have several kernels run at once.
double BusySeconds(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end());
  double seconds = 0;
  uint64_t until = 0;
  for (auto [start, end] : spans) {
    start = std::max(start, until);
    if (start >= end) continue;
    seconds += ToSeconds({start, end});
    until = end;
  }
  return seconds;
}

}  // namespace

// Where CUPTI's callbacks, which run on a thread of its own, leave full buffers.
struct CuptiActivity::Sink {
  struct Filled {
    uint8_t* bytes;
    size_t valid_bytes;
  };

  static Sink& Get() {
    static auto& sink = *new Sink;
    return sink;
  }

  static void CUPTIAPI Request(uint8_t** buffer, size_t* size, size_t* max_records) {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
    *size = *buffer ? kBufferBytes : 0;
    *max_records = 0;
  }

  static void CUPTIAPI Complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
    absl::MutexLock lock(&Get().mu);
    Get().filled.push_back({buffer, valid_bytes});
  }

  absl::Mutex mu;
  std::vector<Filled> filled ABSL_GUARDED_BY(mu);
};

CuptiActivity::CuptiActivity(const CuptiApi& api) : api_(api) {}

CuptiActivity::~CuptiActivity() { Stop(); }

absl::Status CuptiActivity::Start() {
  is_started_ = true;
  MTMC_RETURN_IF_ERROR(
      CuptiStatus(api_, api_.cuptiActivityRegisterCallbacks(Sink::Request, Sink::Complete),
                  "cuptiActivityRegisterCallbacks"));
  for (CUpti_ActivityKind kind : kKinds) {
    MTMC_RETURN_IF_ERROR(CuptiStatus(api_, api_.cuptiActivityEnable(kind), "cuptiActivityEnable"));
  }
  // Leftovers of before.
  Collect();
  return absl::OkStatus();
}

void CuptiActivity::Stop() {
  if (!is_started_) return;
  is_started_ = false;
  // CUPTI stays attached. The host then enqueues a launch 0.5 us later, before the device
  // begins (HostLead), and the device takes as long as after cuptiFinalize(): 16.16 us and
  // 16.20 us for nine launches (H200, CUPTI 13.0).
  for (CUpti_ActivityKind kind : kKinds) api_.cuptiActivityDisable(kind);
}

StepActivity CuptiActivity::Collect() {
  api_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  std::vector<Sink::Filled> filled;
  {
    absl::MutexLock lock(&Sink::Get().mu);
    filled.swap(Sink::Get().filled);
  }
  StepActivity activity;
  std::vector<Span> spans;
  double longest = 0;
  for (const Sink::Filled& buffer : filled) {
    CUpti_Activity* record = nullptr;
    while (api_.cuptiActivityGetNextRecord(buffer.bytes, buffer.valid_bytes, &record) ==
           CUPTI_SUCCESS) {
      if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
        spans.emplace_back(copy.start, copy.end);
      } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        const auto& fill = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
        spans.emplace_back(fill.start, fill.end);
      } else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        const double seconds = ToSeconds(spans.emplace_back(kernel.start, kernel.end));
        if (seconds < longest) continue;
        longest = seconds;
        activity.registers_per_thread = kernel.registersPerThread;
        activity.shared_memory_bytes =
            int64_t{kernel.staticSharedMemory} + kernel.dynamicSharedMemory;
        activity.local_memory_bytes = kernel.localMemoryPerThread;
        activity.blocks = int64_t{kernel.gridX} * kernel.gridY * kernel.gridZ;
        activity.threads_per_block = kernel.blockX * kernel.blockY * kernel.blockZ;
      }
    }
    std::free(buffer.bytes);
  }
  activity.seconds = BusySeconds(std::move(spans));
  return activity;
}

}  // namespace mtmc::worker

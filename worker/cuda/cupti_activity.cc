// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cupti_activity.h"

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

double ToSeconds(uint64_t start_ns, uint64_t end_ns) {
  return static_cast<double>(end_ns - start_ns) * 1e-9;
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
  double longest = 0;
  for (const Sink::Filled& buffer : filled) {
    CUpti_Activity* record = nullptr;
    while (api_.cuptiActivityGetNextRecord(buffer.bytes, buffer.valid_bytes, &record) ==
           CUPTI_SUCCESS) {
      if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
        activity.seconds += ToSeconds(copy.start, copy.end);
      } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        const auto& fill = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
        activity.seconds += ToSeconds(fill.start, fill.end);
      } else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        const double seconds = ToSeconds(kernel.start, kernel.end);
        activity.seconds += seconds;
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
  return activity;
}

}  // namespace mtmc::worker

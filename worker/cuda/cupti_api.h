// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Every function of CUPTI that is used.
#define MTMC_CUPTI_FUNCTIONS(F)                   \
  F(cuptiGetResultString)                         \
  F(cuptiFinalize)                                \
  F(cuptiActivityRegisterCallbacks)               \
  F(cuptiActivityEnable)                          \
  F(cuptiActivityDisable)                         \
  F(cuptiActivityFlushAll)                        \
  F(cuptiActivityGetNextRecord)                   \
  F(cuptiDeviceGetChipName)                       \
  F(cuptiProfilerInitialize)                      \
  F(cuptiProfilerDeInitialize)                    \
  F(cuptiProfilerDeviceSupported)                 \
  F(cuptiProfilerGetCounterAvailability)          \
  F(cuptiProfilerHostInitialize)                  \
  F(cuptiProfilerHostDeinitialize)                \
  F(cuptiProfilerHostConfigAddMetrics)            \
  F(cuptiProfilerHostGetConfigImageSize)          \
  F(cuptiProfilerHostGetConfigImage)              \
  F(cuptiProfilerHostGetNumOfPasses)              \
  F(cuptiProfilerHostEvaluateToGpuValues)         \
  F(cuptiRangeProfilerEnable)                     \
  F(cuptiRangeProfilerDisable)                    \
  F(cuptiRangeProfilerGetCounterDataSize)         \
  F(cuptiRangeProfilerCounterDataImageInitialize) \
  F(cuptiRangeProfilerSetConfig)                  \
  F(cuptiRangeProfilerStart)                      \
  F(cuptiRangeProfilerStop)                       \
  F(cuptiRangeProfilerPushRange)                  \
  F(cuptiRangeProfilerPopRange)                   \
  F(cuptiRangeProfilerDecodeData)                 \
  F(cuptiRangeProfilerGetCounterDataInfo)         \
  F(cuptiRangeProfilerCounterDataGetRangeInfo)

namespace mtmc::worker {

// The functions of NVIDIA's profiling library, opened at run time.
struct CuptiApi {
#define MTMC_DECLARE(name) decltype(&::name) name = nullptr;
  MTMC_CUPTI_FUNCTIONS(MTMC_DECLARE)
#undef MTMC_DECLARE
};

// CUPTI from `library`, the path of libcupti.so.13, opened once per process with
// the libraries beside it that it looks for by name alone. UNAVAILABLE when it
// cannot be opened. Needs neither a driver nor a device.
absl::StatusOr<const CuptiApi*> OpenCupti(const std::string& library);

// OK when `result` is success. PERMISSION_DENIED when the host keeps counters
// from this user, UNAVAILABLE otherwise.
absl::Status CuptiStatus(const CuptiApi& api, CUptiResult result, const char* call);

}  // namespace mtmc::worker

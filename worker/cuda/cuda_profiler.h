// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "worker/cuda/cuda_context.h"
#include "worker/cuda/cupti_activity.h"
#include "worker/cuda/occupancy.h"
#include "worker/cuda/range_profiler.h"
#include "worker/device/device.h"

namespace mtmc::worker {

// What the GPU did in each step of a plan, through CUPTI: times and resources,
// and hardware counters. CUPTI stays attached until Detach, because attaching it takes
// 13 ms; only the counters slow what runs meanwhile, and detach it themselves.
// Thread-compatible.
class CudaProfiler {
 public:
  // Null where there is no CUPTI, which is logged. `library` is the path of
  // libcupti.so.13.
  static std::unique_ptr<CudaProfiler> Create(std::shared_ptr<const CudaContext> context,
                                              const std::string& library);

  // False when the host does not let CUPTI record, which is logged and stays so.
  bool Start();

  // Runs the steps, each alone on the device, and stops. REQUIRES: Start() just
  // said true.
  Outcome<std::vector<StepActivity>> Profile(const std::vector<Body>& steps);

  // As Device::Count; `prepare` puts the caches into the state of a first run.
  Outcome<StepCounters> Count(const std::vector<Body>& steps, CounterScope scope,
                              const Body& prepare);

  // REQUIRES: there is no graph that was made while CUPTI was attached; launching one
  // afterwards ends the context (CUPTI 13.0).
  void Detach();

  bool is_refused() const { return is_refused_; }

 private:
  CudaProfiler(const CuptiApi& api, std::shared_ptr<const CudaContext> context);

  const CuptiApi& api_;
  const std::shared_ptr<const CudaContext> context_;
  const MultiprocessorLimits limits_;
  CuptiActivity activity_;
  RangeProfiler counters_;
  bool is_refused_ = false;
  bool is_attached_ = false;
};

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "worker/cuda/cupti_api.h"
#include "worker/device/device.h"

namespace mtmc::worker {

// Times of single kernels as the GPU took them, through CUPTI's activity records.
//
//   activity->Start();
//   ... enqueue, wait for the stream ...
//   activity->Collect();   // what ran since Start or the last Collect
//   activity->Stop();
//
// At most one exists per process: CUPTI calls back without a context of ours.
// Thread-compatible.
class CuptiActivity {
 public:
  // Borrows `api`, which is the process's.
  explicit CuptiActivity(const CuptiApi& api);
  ~CuptiActivity();
  CuptiActivity(const CuptiActivity&) = delete;
  CuptiActivity& operator=(const CuptiActivity&) = delete;

  // UNAVAILABLE when the host forbids it or another profiler is attached.
  absl::Status Start();

  // What is timed afterwards takes as long on the device as before.
  void Stop();

  // Sums over kernels, copies and fills; launch and resources are those of the
  // longest kernel. REQUIRES: the stream is idle.
  StepActivity Collect();

 private:
  struct Sink;

  const CuptiApi& api_;
  bool is_started_ = false;
};

}  // namespace mtmc::worker

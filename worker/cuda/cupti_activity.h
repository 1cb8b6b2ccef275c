// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  // `library` is the path of libcupti.so.13. UNAVAILABLE when it cannot be opened.
  static absl::StatusOr<std::unique_ptr<CuptiActivity>> Open(const std::string& library);
  ~CuptiActivity();

  // UNAVAILABLE when the host forbids it or another profiler is attached.
  absl::Status Start();

  // Detaches, so that what is timed afterwards is not slowed.
  void Stop();

  // Sums over kernels, copies and fills; resources are those of the longest
  // kernel. REQUIRES: the stream is idle.
  StepActivity Collect();

 private:
  struct Api;
  struct Sink;

  explicit CuptiActivity(std::unique_ptr<Api> api);

  absl::Status ToStatus(int result, const char* call) const;

  const std::unique_ptr<Api> api_;
  bool is_started_ = false;
};

}  // namespace mtmc::worker

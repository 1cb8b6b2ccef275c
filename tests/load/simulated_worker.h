// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <random>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mtmc/v1/worker.grpc.pb.h"
#include "tests/load/field.h"

namespace mtmc::load {

// A worker that keeps to the protocol (worker.proto) over any outage, and works on a
// lease for a drawn time: none at all for every tenth, else up to twice `mean_work`.
// Thread-safe. Lives until `field.calls` is cancelled and `field.pacer` stopped.
class SimulatedWorker {
 public:
  SimulatedWorker(const Field& field, const std::shared_ptr<grpc::Channel>& channel, int number,
                  absl::Duration mean_work, uint64_t seed);

  // Makes the first call.
  void Start();

 private:
  struct Call;

  void Send() ABSL_LOCKS_EXCLUDED(mu_);
  void Take(const Call& call, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  void Describe(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Adopt(const v1::Lease& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Duration DrawWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Field field_;
  const absl::Duration mean_work_;
  const std::unique_ptr<v1::LeaseService::Stub> stub_;
  absl::Mutex mu_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_);
  // What the worker said last that it is doing.
  v1::SynchronizeRequest request_ ABSL_GUARDED_BY(mu_);
  v1::Lease lease_ ABSL_GUARDED_BY(mu_);
  // When the work on `lease_` is done.
  absl::Time done_time_ ABSL_GUARDED_BY(mu_);
  // When the last result was sent first; in the infinite past once a lease came after it.
  absl::Time result_time_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace mtmc::load

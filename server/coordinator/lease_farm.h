// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/metrics/metrics.h"
#include "common/testing/fake_clock.h"
#include "mtmc/v1/worker.pb.h"
#include "server/coordinator/coordinator_metrics.h"
#include "server/coordinator/lease_manager.h"
#include "server/store/fake_job_store.h"

// The language in which LeaseManager is tested.
namespace mtmc::coordinator {

v1::DeviceFacts TestDevice(const std::string& product = "cpu");

// A store that can be told to fail.
class FailingStore final : public store::FakeJobStore {
 public:
  bool is_full = false;

  absl::Status Commit(const store::Write& write) override;
};

// One call of a worker; `response` is there once it was answered.
struct Call {
  std::optional<absl::StatusOr<v1::SynchronizeResponse>> response;

  bool is_held() const { return !response; }

  const v1::SynchronizeResponse& value() const { return response->value(); }

  std::string lease() const { return response && response->ok() ? value().lease().id() : ""; }
};

v1::LeaseResult Measured(double seconds = 1);
v1::LeaseResult Crashed();
v1::LeaseResult CannotWork();

// A farm of workers and searches over one store.
struct Farm {
  testing::FakeClock clock;
  FailingStore store;
  metrics::Registry registry{"test"};
  CoordinatorMetrics metrics{registry};
  std::unique_ptr<LeaseManager> leases;
  // Results, and reasons for a wait, by key of the work.
  std::map<std::string, std::vector<v1::LeaseResult>> results;
  std::map<std::string, std::vector<std::string>> waits;
  int granted = 0;
  // Of each worker that calls and does not say otherwise.
  v1::Isolation isolation = v1::ISOLATION_RESTRICTED;
  // Who calls, as the guard knows them; without a guard nobody.
  std::string identity;

  Farm() { Restart(); }

  // A new coordinator over the same store.
  void Restart();

  // A job that the store knows, in that state from now on.
  void RecordJob(const std::string& name, v1::Job::State state);

  // An evaluation for the device that all workers have.
  void Submit(const std::string& key, const std::string& job = "j",
              fleet::WorkerDemand demand = {.device = TestDevice()});

  // The same, with a least isolation.
  void SubmitIsolated(const std::string& key, v1::Isolation least, const std::string& job = "j");

  v1::SynchronizeRequest Request(const std::string& worker, const std::string& instance = "");

  std::shared_ptr<Call> Send(const v1::SynchronizeRequest& request);

  std::shared_ptr<Call> Idle(const std::string& worker, const std::string& instance = "");

  // Of a worker with this isolation.
  std::shared_ptr<Call> IdleIn(v1::Isolation level, const std::string& worker);

  std::shared_ptr<Call> Executing(const std::string& worker, const std::string& lease);

  // Of a worker that can prepare `most` more; `ahead` is what it holds already.
  std::shared_ptr<Call> Prefetching(const std::string& worker, const std::string& lease,
                                    const std::string& ahead = "", int most = 1);

  std::shared_ptr<Call> Completed(const std::string& worker, const std::string& lease,
                                  v1::LeaseResult result = Measured());

  // Time in which a silent worker is lost.
  void LoseSilentWorkers();

  // Time after which work that no worker may do is spoken of.
  void LosePatience();
};

}  // namespace mtmc::coordinator

// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/lease_farm.h"

#include <catch2/catch.hpp>
#include <utility>

#include "common/config/version.h"
#include "common/testing/status_matchers.h"

namespace mtmc::coordinator {

v1::DeviceFacts TestDevice(const std::string& product) {
  v1::DeviceFacts device;
  device.set_product(product);
  device.add_dialects(v1::DIALECT_OPENCL);
  return device;
}

absl::Status FailingStore::Commit(const store::Write& write) {
  if (is_full) return absl::ResourceExhaustedError("full");
  return FakeJobStore::Commit(write);
}

v1::LeaseResult Measured(double seconds) {
  v1::LeaseResult result;
  result.mutable_evaluation()->mutable_measurement()->set_median_seconds(seconds);
  return result;
}

v1::LeaseResult Crashed() {
  v1::LeaseResult result;
  result.mutable_evaluation()->mutable_failure()->set_kind(v1::Failure::KIND_CRASH);
  return result;
}

v1::LeaseResult CannotWork() {
  v1::LeaseResult result;
  result.mutable_worker_failure()->set_message("no PyTorch");
  return result;
}

void Farm::Restart() {
  auto created = LeaseManager::Create({}, clock, store, metrics);
  REQUIRE_THAT(created.status(), testing::IsOk());
  leases = *std::move(created);
}

void Farm::RecordJob(const std::string& name, v1::Job::State state) {
  v1::Job job;
  job.set_name(name);
  job.set_state(state);
  store::Write write{.job_name = name};
  (store.LookupJob(name).ok() ? write.job : write.new_job) = job;
  REQUIRE_THAT(store.Commit(write), testing::IsOk());
}

void Farm::Submit(const std::string& key, const std::string& job, fleet::WorkerDemand demand) {
  search::Work work;
  work.key = key;
  work.lease.set_job(job);
  work.lease.set_candidate(job + "/candidates/" + key);
  work.lease.mutable_evaluation()->mutable_options()->set_min_isolation(demand.min_isolation);
  work.demand = std::move(demand);
  work.granted = [this] { ++granted; };
  work.stuck = [this, key](const std::string& why) { waits[key].push_back(why); };
  leases->Submit(work, [this, key](absl::StatusOr<v1::LeaseResult> result) {
    results[key].push_back(*std::move(result));
  });
}

void Farm::SubmitIsolated(const std::string& key, v1::Isolation least, const std::string& job) {
  Submit(key, job, {.min_isolation = least, .device = TestDevice()});
}

v1::SynchronizeRequest Farm::Request(const std::string& worker, const std::string& instance) {
  v1::SynchronizeRequest request;
  request.mutable_worker()->set_name("workers/" + worker);
  request.mutable_worker()->set_version(std::string(config::Version()));
  *request.mutable_worker()->mutable_device() = TestDevice();
  request.mutable_worker()->set_isolation_level(isolation);
  request.set_instance_id(instance.empty() ? worker + "-1" : instance);
  request.mutable_idle();
  return request;
}

std::shared_ptr<Call> Farm::Send(const v1::SynchronizeRequest& request) {
  auto call = std::make_shared<Call>();
  leases->Synchronize(request, identity, [call](absl::StatusOr<v1::SynchronizeResponse> response) {
    REQUIRE(call->is_held());
    call->response = std::move(response);
  });
  return call;
}

std::shared_ptr<Call> Farm::Idle(const std::string& worker, const std::string& instance) {
  return Send(Request(worker, instance));
}

std::shared_ptr<Call> Farm::IdleIn(v1::Isolation level, const std::string& worker) {
  v1::SynchronizeRequest request = Request(worker);
  request.mutable_worker()->set_isolation_level(level);
  return Send(request);
}

std::shared_ptr<Call> Farm::Executing(const std::string& worker, const std::string& lease) {
  v1::SynchronizeRequest request = Request(worker);
  request.mutable_executing()->set_lease_id(lease);
  return Send(request);
}

std::shared_ptr<Call> Farm::Prefetching(const std::string& worker, const std::string& lease,
                                        const std::string& ahead, int most) {
  v1::SynchronizeRequest request = Request(worker);
  request.mutable_executing()->set_lease_id(lease);
  request.set_most_prefetched(most);
  if (!ahead.empty()) request.add_prefetched_lease_ids(ahead);
  return Send(request);
}

std::shared_ptr<Call> Farm::Completed(const std::string& worker, const std::string& lease,
                                      v1::LeaseResult result) {
  v1::SynchronizeRequest request = Request(worker);
  request.mutable_completed()->set_lease_id(lease);
  *request.mutable_completed()->mutable_result() = std::move(result);
  return Send(request);
}

void Farm::LoseSilentWorkers() {
  clock.Advance(absl::Seconds(16));
  leases->Tick();
}

void Farm::LosePatience() {
  clock.Advance(LeaseManager::Options().patience);
  leases->Tick();
}

}  // namespace mtmc::coordinator

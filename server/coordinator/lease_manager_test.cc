// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/lease_manager.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/config/version.h"
#include "common/metrics/metrics.h"
#include "common/rpc/error.h"
#include "common/testing/fake_clock.h"
#include "common/testing/status_matchers.h"
#include "server/coordinator/coordinator_metrics.h"
#include "server/search/fingerprint.h"
#include "server/store/fake_job_store.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;
using testing::StatusIs;

v1::DeviceFacts Device(const std::string& product = "cpu") {
  v1::DeviceFacts device;
  device.set_product(product);
  device.add_dialects(v1::DIALECT_OPENCL);
  return device;
}

// A store that can be told to fail.
class FailingStore final : public store::JobStore {
 public:
  bool is_full = false;

  absl::Status Commit(const store::Write& write) override {
    if (is_full) return absl::ResourceExhaustedError("full");
    return store_.Commit(write);
  }

  absl::StatusOr<v1::Job> LookupJob(const std::string& n) override { return store_.LookupJob(n); }

  absl::StatusOr<store::JobPage> ListJobs(const store::JobQuery& q) override {
    return store_.ListJobs(q);
  }

  absl::StatusOr<v1::Candidate> LookupCandidate(const std::string& n) override {
    return store_.LookupCandidate(n);
  }

  absl::StatusOr<store::CandidatePage> ListCandidates(const store::CandidateQuery& q) override {
    return store_.ListCandidates(q);
  }

  absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(const std::string& job, int64_t after,
                                                       int limit) override {
    return store_.ReadEvents(job, after, limit);
  }

  absl::StatusOr<std::optional<store::EvaluationRecord>> FindEvaluation(
      const std::string& f) override {
    return store_.FindEvaluation(f);
  }

  absl::StatusOr<std::optional<v1::Inspection>> FindInspection(const std::string& k) override {
    return store_.FindInspection(k);
  }

  absl::StatusOr<store::Fleet> ReadFleet() override { return store_.ReadFleet(); }

 private:
  store::FakeJobStore store_;
};

// One call of a worker; `response` is there once it was answered.
struct Call {
  std::optional<absl::StatusOr<v1::SynchronizeResponse>> response;

  bool is_held() const { return !response; }

  const v1::SynchronizeResponse& value() const { return response->value(); }

  std::string lease() const { return response && response->ok() ? value().lease().id() : ""; }
};

v1::LeaseResult Measured(double seconds = 1) {
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

// The language of these tests: a farm of workers and searches over one store.
struct Farm {
  testing::FakeClock clock;
  FailingStore store;
  metrics::Registry registry{"test"};
  CoordinatorMetrics metrics{registry};
  std::unique_ptr<LeaseManager> leases;
  // Results by key of the work.
  std::map<std::string, std::vector<v1::LeaseResult>> results;
  int granted = 0;

  Farm() { Restart(); }

  // A new coordinator over the same store.
  void Restart() {
    auto created = LeaseManager::Create({}, clock, store, metrics);
    REQUIRE_THAT(created.status(), IsOk());
    leases = *std::move(created);
  }

  void Submit(const std::string& key, const std::string& job = "j") {
    search::Work work;
    work.key = key;
    work.lease.set_job(job);
    work.lease.set_candidate(job + "/candidates/" + key);
    work.lease.mutable_evaluation();
    work.dialect = v1::DIALECT_OPENCL;
    work.device_class = search::DeviceClass(Device());
    work.granted = [this] { ++granted; };
    leases->Submit(work, [this, key](absl::StatusOr<v1::LeaseResult> result) {
      results[key].push_back(*std::move(result));
    });
  }

  v1::SynchronizeRequest Request(const std::string& worker, const std::string& instance) {
    v1::SynchronizeRequest request;
    request.mutable_worker()->set_name("workers/" + worker);
    request.mutable_worker()->set_version(std::string(config::Version()));
    *request.mutable_worker()->mutable_device() = Device();
    request.set_instance_id(instance.empty() ? worker + "-1" : instance);
    request.mutable_idle();
    return request;
  }

  std::shared_ptr<Call> Send(const v1::SynchronizeRequest& request) {
    auto call = std::make_shared<Call>();
    leases->Synchronize(request, [call](absl::StatusOr<v1::SynchronizeResponse> response) {
      REQUIRE(call->is_held());
      call->response = std::move(response);
    });
    return call;
  }

  std::shared_ptr<Call> Idle(const std::string& worker, const std::string& instance = "") {
    return Send(Request(worker, instance));
  }

  std::shared_ptr<Call> Executing(const std::string& worker, const std::string& lease) {
    v1::SynchronizeRequest request = Request(worker, "");
    request.mutable_executing()->set_lease_id(lease);
    return Send(request);
  }

  // Of a worker that can prepare one more; `ahead` is what it holds already.
  std::shared_ptr<Call> Prefetching(const std::string& worker, const std::string& lease,
                                    const std::string& ahead = "") {
    v1::SynchronizeRequest request = Request(worker, "");
    request.mutable_executing()->set_lease_id(lease);
    request.set_can_prefetch(true);
    request.set_prefetched_lease_id(ahead);
    return Send(request);
  }

  std::shared_ptr<Call> Completed(const std::string& worker, const std::string& lease,
                                  v1::LeaseResult result = Measured()) {
    v1::SynchronizeRequest request = Request(worker, "");
    request.mutable_completed()->set_lease_id(lease);
    *request.mutable_completed()->mutable_result() = std::move(result);
    return Send(request);
  }

  // Time in which a silent worker is lost.
  void LoseSilentWorkers() {
    clock.Advance(absl::Seconds(16));
    leases->Tick();
  }
};

}  // namespace

TEST_CASE("LeaseManager answers a waiting worker at once when work comes", "[coordinator]") {
  Farm farm;
  const auto call = farm.Idle("w");
  REQUIRE(call->is_held());

  farm.Submit("f");

  CHECK_FALSE(call->is_held());
  CHECK(call->value().lease().candidate() == "j/candidates/f");
  CHECK(farm.granted == 1);
}

TEST_CASE("LeaseManager answers a waiting worker after the hold", "[coordinator]") {
  Farm farm;
  const auto call = farm.Idle("w");

  farm.clock.Advance(absl::Seconds(5));
  farm.leases->Tick();

  REQUIRE_FALSE(call->is_held());
  CHECK(call->value().has_idle());
}

TEST_CASE("LeaseManager gives a quarantined worker no lease until it recovers", "[coordinator]") {
  Farm farm;
  v1::SynchronizeRequest sick = farm.Request("w", "");
  sick.mutable_worker()->set_quarantine_reason("the canary fails: computed 1 where 2 is right");
  farm.Send(sick);
  farm.Submit("f");
  CHECK_FALSE(farm.leases->FindDevice(v1::Job()));

  const auto while_sick = farm.Send(sick);
  const auto shown = farm.leases->LookupWorker("workers/w");
  const auto recovered = farm.Idle("w");

  CHECK(while_sick->value().has_idle());
  CHECK(shown->state() == v1::Worker::STATE_QUARANTINED);
  CHECK_THAT(shown->quarantine_reason(), Catch::StartsWith("the canary fails"));
  CHECK_FALSE(recovered->lease().empty());
  CHECK(farm.leases->LookupWorker("workers/w")->state() == v1::Worker::STATE_RUNNING);
}

TEST_CASE("The lease of a worker that is quarantined goes to another", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lost = farm.Idle("a")->lease();
  v1::SynchronizeRequest sick = farm.Request("a", "");
  sick.mutable_worker()->set_quarantine_reason("the canary hangs");

  farm.Send(sick);
  const std::string taken = farm.Idle("b")->lease();
  farm.Completed("b", taken);

  CHECK_FALSE(taken.empty());
  CHECK(taken != lost);
  CHECK(farm.results["f"].size() == 1);
}

TEST_CASE("A result that comes with a quarantine is taken, and nothing is granted for it",
          "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  farm.Submit("g");
  v1::SynchronizeRequest request = farm.Request("w", "");
  request.mutable_completed()->set_lease_id(farm.Idle("w")->lease());
  *request.mutable_completed()->mutable_result() = Measured();
  request.mutable_worker()->set_quarantine_reason("XID 79");

  const auto call = farm.Send(request);

  CHECK(call->value().has_idle());
  CHECK(farm.results["f"].size() == 1);
  CHECK(farm.results["g"].empty());
  CHECK(farm.leases->LookupWorker("workers/w")->activity().empty());
}

TEST_CASE("LeaseManager records a result before it tells the search", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();

  const auto call = farm.Completed("w", lease);

  CHECK(call->value().has_idle());
  REQUIRE(farm.results["f"].size() == 1);
  CHECK((*farm.store.FindEvaluation("f"))->evaluation.worker() == "workers/w");
  CHECK(farm.store.ReadFleet()->leases.empty());
}

TEST_CASE("LeaseManager takes a repeated result once", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();

  farm.Completed("w", lease);
  const auto again = farm.Completed("w", lease);

  CHECK(again->value().has_idle());
  CHECK(farm.results["f"].size() == 1);
}

TEST_CASE("LeaseManager does not acknowledge a result that the store refused", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();

  farm.store.is_full = true;
  const auto refused = farm.Completed("w", lease);
  farm.store.is_full = false;
  const auto accepted = farm.Completed("w", lease);

  CHECK_THAT(refused->response->status(), StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK_THAT(accepted->response->status(), IsOk());
  CHECK(farm.results["f"].size() == 1);
}

TEST_CASE("LeaseManager does not grant what it cannot record", "[coordinator]") {
  Farm farm;
  farm.store.is_full = true;
  const auto call = farm.Idle("w");
  farm.Submit("f");
  REQUIRE(call->is_held());

  farm.store.is_full = false;
  farm.leases->Tick();

  CHECK_FALSE(call->lease().empty());
}

TEST_CASE("LeaseManager gives the work of a silent worker to another", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string first = farm.Idle("w1")->lease();
  farm.LoseSilentWorkers();

  const auto call = farm.Idle("w2");

  CHECK(call->lease() != first);
  CHECK(call->value().lease().attempt() == 1);
  CHECK(farm.leases->LookupWorker("workers/w1")->state() == v1::Worker::STATE_LOST);
}

TEST_CASE("LeaseManager keeps a worker that reports progress", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();

  for (int i = 0; i < 5; ++i) {
    farm.clock.Advance(absl::Seconds(9));
    CHECK(farm.Executing("w", lease)->lease() == lease);
    farm.leases->Tick();
  }

  CHECK(farm.leases->LookupWorker("workers/w")->state() == v1::Worker::STATE_RUNNING);
}

TEST_CASE("LeaseManager calls it a crash of the candidate when three workers were lost",
          "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  for (const char* worker : {"w1", "w2", "w3"}) {
    REQUIRE_FALSE(farm.Idle(worker)->lease().empty());
    farm.LoseSilentWorkers();
  }

  REQUIRE(farm.results["f"].size() == 1);
  const auto& failure = farm.results["f"][0].evaluation().failure();
  CHECK(failure.kind() == v1::Failure::KIND_CRASH);
  CHECK(failure.message() == "worker lost 3 times");
  CHECK(farm.Idle("w4")->is_held());
}

TEST_CASE("LeaseManager counts lost workers over a restart", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  for (const char* worker : {"w1", "w2", "w3"}) {
    farm.Idle(worker);
    farm.LoseSilentWorkers();
    if (!farm.results["f"].empty()) break;
    farm.Restart();
    farm.Submit("f");
  }

  REQUIRE(farm.results["f"].size() == 1);
  CHECK(farm.results["f"][0].evaluation().failure().kind() == v1::Failure::KIND_CRASH);
}

TEST_CASE("LeaseManager counts crashes of the runner apart from lost workers", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  farm.Completed("w", farm.Idle("w")->lease(), Crashed());
  CHECK(farm.results["f"].empty());
  const auto second = farm.Idle("w");
  CHECK(second->value().lease().attempt() == 0);

  farm.Completed("w", second->lease(), Crashed());

  REQUIRE(farm.results["f"].size() == 1);
  CHECK(farm.results["f"][0].evaluation().failure().kind() == v1::Failure::KIND_CRASH);
}

TEST_CASE("LeaseManager asks another worker when one cannot do the work", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w1")->lease();
  const auto other = farm.Idle("w2");

  farm.Completed("w1", lease, CannotWork());

  CHECK_FALSE(other->lease().empty());
  CHECK(farm.results["f"].empty());
}

TEST_CASE("LeaseManager accepts a late result that nobody else has finished", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string late = farm.Idle("w1")->lease();
  farm.LoseSilentWorkers();
  const std::string current = farm.Idle("w2")->lease();

  farm.Completed("w1", late, Measured(1));
  const auto stopped = farm.Executing("w2", current);
  farm.Completed("w2", current, Measured(2));

  CHECK(stopped->value().has_idle());
  REQUIRE(farm.results["f"].size() == 1);
  CHECK(farm.results["f"][0].evaluation().measurement().median_seconds() == 1);
}

TEST_CASE("LeaseManager lets a worker that was silent go on when nobody took over",
          "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();
  farm.LoseSilentWorkers();

  const auto call = farm.Executing("w", lease);

  CHECK(call->lease() == lease);
  CHECK(farm.Idle("w2")->is_held());
}

TEST_CASE("LeaseManager repeats a grant whose answer was lost", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();

  const auto again = farm.Idle("w");

  CHECK(again->lease() == lease);
  CHECK(again->value().lease().has_evaluation());
}

TEST_CASE("LeaseManager goes on with a lease after a restart", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();

  farm.Restart();
  CHECK(farm.Executing("w", lease)->lease() == lease);
  farm.Submit("f");
  farm.Completed("w", lease);

  CHECK(farm.results["f"].size() == 1);
}

TEST_CASE("LeaseManager takes a result after a restart before the search is back",
          "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();

  farm.Restart();
  const auto call = farm.Completed("w", lease);

  CHECK(call->value().has_idle());
  CHECK((*farm.store.FindEvaluation("f"))->candidate == "j/candidates/f");
}

TEST_CASE("LeaseManager sends a lost grant again after a restart once its search is back",
          "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();

  farm.Restart();
  const auto call = farm.Idle("w");
  REQUIRE(call->is_held());
  farm.Submit("f");

  CHECK(call->lease() == lease);
  CHECK(call->value().lease().has_evaluation());
}

TEST_CASE("LeaseManager drops leases that no search wants after a restart", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  farm.Idle("w");

  farm.Restart();
  farm.LoseSilentWorkers();

  CHECK(farm.store.ReadFleet()->leases.empty());
}

TEST_CASE("LeaseManager takes the work of a restarted worker away at once", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w", "first")->lease();

  const auto restarted = farm.Idle("w", "second");

  CHECK(restarted->lease() != lease);
  CHECK(restarted->value().lease().attempt() == 1);
}

TEST_CASE("LeaseManager turns away the older of two workers with one name", "[coordinator]") {
  Farm farm;
  const auto first = farm.Idle("w", "first");

  farm.Idle("w", "second");
  const auto again = farm.Idle("w", "first");

  REQUIRE_FALSE(first->is_held());
  CHECK(rpc::ErrorReason(first->response->status()) == "WORKER_REPLACED");
  CHECK(rpc::ErrorReason(again->response->status()) == "WORKER_REPLACED");
}

TEST_CASE("LeaseManager refuses a worker of another version", "[coordinator]") {
  Farm farm;
  v1::SynchronizeRequest request = farm.Request("w", "");
  request.mutable_worker()->set_version("99.0.0");

  const auto call = farm.Send(request);

  CHECK_THAT(call->response->status(), StatusIs(absl::StatusCode::kFailedPrecondition, "99.0.0"));
  CHECK(rpc::ErrorReason(call->response->status()) == "VERSION_MISMATCH");
}

TEST_CASE("LeaseManager serves jobs in turn", "[coordinator]") {
  Farm farm;
  for (const char* key : {"a1", "a2"}) farm.Submit(key, "a");
  farm.Submit("b1", "b");

  std::vector<std::string> order;
  for (int i = 0; i < 3; ++i) {
    const auto call = farm.Idle("w");
    order.push_back(call->value().lease().candidate());
    farm.Completed("w", call->lease());
  }

  CHECK(order == std::vector<std::string>{"a/candidates/a1", "b/candidates/b1", "a/candidates/a2"});
}

TEST_CASE("LeaseManager does equal work once for two jobs", "[coordinator]") {
  Farm farm;
  farm.Submit("f", "a");
  farm.Submit("f", "b");

  farm.Completed("w", farm.Idle("w")->lease());

  CHECK(farm.results["f"].size() == 2);
  CHECK(farm.Idle("w")->is_held());
}

TEST_CASE("LeaseManager stops the worker of abandoned work", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();

  farm.leases->Abandon("f", "j");
  const auto executing = farm.Executing("w", lease);

  REQUIRE_FALSE(executing->is_held());
  CHECK(executing->value().has_idle());
  CHECK(farm.store.ReadFleet()->leases.empty());
}

TEST_CASE("LeaseManager goes on with work that another job still waits for", "[coordinator]") {
  Farm farm;
  farm.Submit("f", "a");
  farm.Submit("f", "b");
  const std::string lease = farm.Idle("w")->lease();

  farm.leases->Abandon("f", "a");
  farm.Completed("w", lease);

  CHECK(farm.results["f"].size() == 1);
}

TEST_CASE("LeaseManager gives a draining worker nothing new", "[coordinator]") {
  Farm farm;
  const auto waiting = farm.Idle("w");

  const auto drained = farm.leases->SetDraining("workers/w", true);
  farm.Submit("f");

  CHECK(drained->state() == v1::Worker::STATE_DRAINING);
  REQUIRE_FALSE(waiting->is_held());
  CHECK(waiting->value().is_draining());
  CHECK(farm.Idle("w")->lease().empty());
  CHECK_THAT(farm.leases->SetDraining("workers/w", false).status(), IsOk());
  CHECK_FALSE(farm.Idle("w")->lease().empty());
}

TEST_CASE("LeaseManager remembers a drain over a restart", "[coordinator]") {
  Farm farm;
  farm.Idle("w");
  REQUIRE_THAT(farm.leases->SetDraining("workers/w", true).status(), IsOk());

  farm.Restart();
  farm.Submit("f");

  CHECK(farm.Idle("w")->lease().empty());
}

TEST_CASE("LeaseManager does not grant through a call whose client is gone", "[coordinator]") {
  Farm farm;
  const auto call = farm.Idle("w");

  farm.leases->Disconnect("workers/w", "w-1");
  farm.Submit("f");

  CHECK(call->is_held());
  CHECK_FALSE(farm.Idle("w")->lease().empty());
}

TEST_CASE("LeaseManager gives work only to the device class it is for", "[coordinator]") {
  Farm farm;
  v1::SynchronizeRequest request = farm.Request("other", "");
  *request.mutable_worker()->mutable_device() = Device("another product");

  farm.Submit("f");

  CHECK(farm.Send(request)->is_held());
}

TEST_CASE("LeaseManager chooses a CUDA device for a job without a dialect", "[coordinator]") {
  Farm farm;
  v1::Job job;
  CHECK_FALSE(farm.leases->FindDevice(job));
  farm.Idle("w");
  CHECK(farm.leases->FindDevice(job)->dialect == v1::DIALECT_OPENCL);

  v1::SynchronizeRequest request = farm.Request("gpu", "");
  request.mutable_worker()->mutable_device()->set_product("NVIDIA H200");
  request.mutable_worker()->mutable_device()->add_dialects(v1::DIALECT_CUDA);
  farm.Send(request);

  CHECK(farm.leases->FindDevice(job)->dialect == v1::DIALECT_CUDA);
  job.mutable_worker_selector()->set_product("cpu");
  CHECK(farm.leases->FindDevice(job)->dialect == v1::DIALECT_OPENCL);
}

TEST_CASE("LeaseManager grants one lease ahead to a worker that can prepare it", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g", "h"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();

  const auto first = farm.Prefetching("w", lease);
  const auto again = farm.Prefetching("w", lease, first->value().prefetch().id());

  CHECK(first->lease() == lease);
  CHECK(first->value().prefetch().candidate() == "j/candidates/g");
  CHECK(first->value().prefetch().has_evaluation());
  CHECK(again->value().prefetch().id() == first->value().prefetch().id());
  // Its search is not told before it begins.
  CHECK(farm.granted == 1);
}

TEST_CASE("A lease held ahead becomes the present one when that is completed", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();
  const std::string ahead = farm.Prefetching("w", lease)->value().prefetch().id();

  const auto next = farm.Completed("w", lease);
  farm.Completed("w", next->lease());

  CHECK(next->lease() == ahead);
  CHECK_FALSE(next->value().has_prefetch());
  CHECK(farm.granted == 2);
  CHECK(farm.results["f"].size() == 1);
  CHECK(farm.results["g"].size() == 1);
  CHECK(farm.store.ReadFleet()->leases.empty());
}

TEST_CASE("LeaseManager grants nothing ahead that another worker could begin", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("busy")->lease();
  // Between two calls: it holds none, and comes back at once.
  const auto waiting = farm.Idle("idle");
  farm.clock.Advance(absl::Seconds(5));
  farm.leases->Tick();
  REQUIRE_FALSE(waiting->is_held());
  farm.Submit("g");

  CHECK_FALSE(farm.Prefetching("busy", lease)->value().has_prefetch());
  CHECK(farm.Idle("idle")->value().lease().candidate() == "j/candidates/g");
}

TEST_CASE("LeaseManager grants nothing ahead to a worker that cannot prepare", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();

  CHECK_FALSE(farm.Executing("w", lease)->value().has_prefetch());
}

TEST_CASE("A worker that becomes idle takes over what another holds ahead", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const std::string lease = farm.Idle("busy")->lease();
  const std::string ahead = farm.Prefetching("busy", lease)->value().prefetch().id();

  const auto taken = farm.Idle("idle");
  const auto told = farm.Prefetching("busy", lease, ahead);
  farm.Completed("idle", taken->lease());
  const auto next = farm.Completed("busy", lease);

  CHECK(taken->value().lease().candidate() == "j/candidates/g");
  CHECK(taken->lease() != ahead);
  CHECK(taken->value().lease().attempt() == 0);
  CHECK_FALSE(told->value().has_prefetch());
  CHECK(next->value().has_idle());
  CHECK(farm.results["f"].size() == 1);
  CHECK(farm.results["g"].size() == 1);
}

TEST_CASE("Losing a worker is no loss of what it held ahead", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  farm.Prefetching("w1", farm.Idle("w1")->lease());

  farm.LoseSilentWorkers();
  std::map<std::string, int> attempts;
  for (const char* worker : {"w2", "w3"}) {
    const auto call = farm.Idle(worker);
    attempts[call->value().lease().candidate()] = call->value().lease().attempt();
  }

  CHECK(attempts == std::map<std::string, int>{{"j/candidates/f", 1}, {"j/candidates/g", 0}});
}

TEST_CASE("A restarted worker has lost one lease and holds none ahead", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  farm.Prefetching("w", farm.Idle("w")->lease());

  std::map<std::string, int> attempts;
  for (int i = 0; i < 2; ++i) {
    v1::SynchronizeRequest request = farm.Request("w", "w-2");
    const auto call = farm.Send(request);
    attempts[call->value().lease().candidate()] = call->value().lease().attempt();
    request.mutable_completed()->set_lease_id(call->lease());
    *request.mutable_completed()->mutable_result() = Measured();
    farm.Send(request);
  }

  CHECK(attempts == std::map<std::string, int>{{"j/candidates/f", 1}, {"j/candidates/g", 0}});
  CHECK(farm.results["g"].size() == 1);
}

TEST_CASE("LeaseManager knows after a restart which lease a worker holds ahead", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();
  const std::string ahead = farm.Prefetching("w", lease)->value().prefetch().id();

  farm.Restart();
  const auto before_search = farm.Prefetching("w", lease, ahead);
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const auto next = farm.Completed("w", lease);

  CHECK(before_search->lease() == lease);
  CHECK(before_search->value().prefetch().id() == ahead);
  CHECK(next->lease() == ahead);
  CHECK(next->value().lease().has_evaluation());
}

TEST_CASE("A draining worker gives back what it holds ahead", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();
  const std::string ahead = farm.Prefetching("w", lease)->value().prefetch().id();

  REQUIRE_THAT(farm.leases->SetDraining("workers/w", true).status(), IsOk());
  const auto told = farm.Prefetching("w", lease, ahead);

  CHECK_FALSE(told->value().has_prefetch());
  CHECK(farm.Idle("w2")->value().lease().candidate() == "j/candidates/g");
}

TEST_CASE("A lease that was begun ahead is called off like any other", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();
  const std::string ahead = farm.Prefetching("w", lease)->value().prefetch().id();
  farm.Completed("w", lease);
  farm.leases->Abandon("g", "j");

  const auto call = farm.Executing("w", ahead);

  CHECK(call->value().has_idle());
  CHECK(farm.store.ReadFleet()->leases.empty());
}

TEST_CASE("What a worker holds ahead is called off when nobody wants it", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();
  const std::string ahead = farm.Prefetching("w", lease)->value().prefetch().id();

  farm.leases->Abandon("g", "j");
  const auto told = farm.Prefetching("w", lease, ahead);

  CHECK_FALSE(told->value().has_prefetch());
  CHECK(farm.Completed("w", lease)->value().has_idle());
}

namespace {

// Workers, searches and coordinators that do at random what they may do at any
// time: call, finish, fall silent, start again.
class RandomFarm {
 public:
  explicit RandomFarm(uint32_t seed) : random_(seed) {}

  void Step() {
    const std::string worker = "w" + std::to_string(random_() % 3);
    Held& held = workers_[worker];
    switch (random_() % 12) {
      case 0:
        Submit("k" + std::to_string(num_submitted_++));
        break;
      case 1:
        farm_.clock.Advance(absl::Seconds(random_() % 20));
        farm_.leases->Tick();
        break;
      case 2:
        // The process was killed, with all that it held.
        held = {.instance = held.instance + 1};
        break;
      case 3:
        if (random_() % 4 == 0) RestartCoordinator();
        break;
      case 4:
      case 5:
      case 6:
        Call(worker, held, /*is_done=*/true);
        break;
      default:
        Call(worker, held, /*is_done=*/false);
    }
    CheckOneLeaseEach();
  }

  // Everybody works on until all is done.
  void Finish() {
    for (int i = 0; i < 2000 && !IsDone(); ++i) {
      for (auto& [worker, held] : workers_) Call(worker, held, /*is_done=*/true);
      farm_.clock.Advance(absl::Seconds(1));
      farm_.leases->Tick();
    }
    REQUIRE(IsDone());
    for (const auto& [key, results] : farm_.results) CHECK(results.size() == 1);
    CHECK(static_cast<int>(farm_.results.size()) == num_submitted_);
    CHECK(farm_.store.ReadFleet()->leases.empty());
  }

 private:
  struct Held {
    int instance = 0;
    std::string lease;
    std::string ahead;
  };

  bool IsDone() const { return static_cast<int>(farm_.results.size()) == num_submitted_; }

  void Submit(const std::string& key) { farm_.Submit(key, "job" + std::to_string(random_() % 3)); }

  void RestartCoordinator() {
    farm_.Restart();
    for (int i = 0; i < num_submitted_; ++i) {
      const std::string key = "k" + std::to_string(i);
      if (!farm_.results.contains(key)) Submit(key);
    }
  }

  // One call of a worker, whose answer may be lost.
  void Call(const std::string& worker, Held& held, bool is_done) {
    v1::SynchronizeRequest request =
        farm_.Request(worker, worker + "-" + std::to_string(held.instance));
    request.set_can_prefetch(true);
    request.set_prefetched_lease_id(held.ahead);
    if (!held.lease.empty() && is_done) {
      request.mutable_completed()->set_lease_id(held.lease);
      *request.mutable_completed()->mutable_result() = Measured();
    } else if (!held.lease.empty()) {
      request.mutable_executing()->set_lease_id(held.lease);
    }
    const auto call = farm_.Send(request);
    // A held call is given up; what is granted through it later is lost.
    if (call->is_held()) {
      farm_.leases->Disconnect("workers/" + worker, request.instance_id());
    }
    if (call->is_held() || random_() % 5 == 0 || !call->response->ok()) return;
    held.lease = call->lease();
    held.ahead = call->value().prefetch().id();
  }

  void CheckOneLeaseEach() const {
    std::set<std::string> works;
    std::map<std::string, int> ahead;
    for (const store::LeaseRecord& lease : farm_.store.ReadFleet()->leases) {
      if (lease.is_lost) continue;
      CHECK(works.insert(lease.work).second);
      if (lease.is_ahead) CHECK(++ahead[lease.worker] == 1);
    }
  }

  std::mt19937 random_;
  mutable Farm farm_;
  std::map<std::string, Held> workers_;
  int num_submitted_ = 0;
};

}  // namespace

TEST_CASE("No work is lost or finished twice, whatever happens when", "[coordinator]") {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    RandomFarm farm(seed);
    for (int i = 0; i < 300; ++i) farm.Step();
    farm.Finish();
  }
}

}  // namespace mtmc::coordinator

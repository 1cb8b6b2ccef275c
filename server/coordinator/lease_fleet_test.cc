// SPDX-License-Identifier: Apache-2.0
//
// Which worker LeaseManager gives work to, and what it says when there is none.
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>

#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/coordinator/lease_farm.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;
using testing::StatusIs;

}  // namespace

TEST_CASE("LeaseManager gives a quarantined worker no lease until it recovers", "[coordinator]") {
  Farm farm;
  v1::SynchronizeRequest sick = farm.Request("w");
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
  v1::SynchronizeRequest sick = farm.Request("a");
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
  v1::SynchronizeRequest request = farm.Request("w");
  request.mutable_completed()->set_lease_id(farm.Idle("w")->lease());
  *request.mutable_completed()->mutable_result() = Measured();
  request.mutable_worker()->set_quarantine_reason("XID 79");

  const auto call = farm.Send(request);

  CHECK(call->value().has_idle());
  CHECK(farm.results["f"].size() == 1);
  CHECK(farm.results["g"].empty());
  CHECK(farm.leases->LookupWorker("workers/w")->activity().empty());
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
  v1::SynchronizeRequest request = farm.Request("w");
  request.mutable_worker()->set_version("99.0.0");

  const auto call = farm.Send(request);

  CHECK_THAT(call->response->status(), StatusIs(absl::StatusCode::kFailedPrecondition, "99.0.0"));
  CHECK(rpc::ErrorReason(call->response->status()) == "VERSION_MISMATCH");
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

TEST_CASE("LeaseManager gives work only to the device class it is for", "[coordinator]") {
  Farm farm;
  v1::SynchronizeRequest request = farm.Request("other");
  *request.mutable_worker()->mutable_device() = TestDevice("another product");

  farm.Submit("f");

  CHECK(farm.Send(request)->is_held());
}

TEST_CASE("LeaseManager chooses a CUDA device for a job without a dialect", "[coordinator]") {
  Farm farm;
  v1::Job job;
  CHECK_FALSE(farm.leases->FindDevice(job));
  farm.Idle("w");
  CHECK(farm.leases->FindDevice(job)->dialect == v1::DIALECT_OPENCL);

  v1::SynchronizeRequest request = farm.Request("gpu");
  request.mutable_worker()->mutable_device()->set_product("NVIDIA H200");
  request.mutable_worker()->mutable_device()->add_dialects(v1::DIALECT_CUDA);
  farm.Send(request);

  CHECK(farm.leases->FindDevice(job)->dialect == v1::DIALECT_CUDA);
  job.mutable_worker_selector()->set_product("cpu");
  CHECK(farm.leases->FindDevice(job)->dialect == v1::DIALECT_OPENCL);
}

namespace {

// A worker with a GPU calls for the first time.
std::shared_ptr<Call> Join(Farm& farm, const std::string& worker, const std::string& product) {
  v1::SynchronizeRequest request = farm.Request(worker);
  request.mutable_worker()->mutable_device()->set_product(product);
  request.mutable_worker()->mutable_device()->add_dialects(v1::DIALECT_CUDA);
  return farm.Send(request);
}

// How many of the next jobs go to each product.
std::map<std::string, int> Shares(Farm& farm, int num_jobs) {
  std::map<std::string, int> shares;
  for (int i = 0; i < num_jobs; ++i) {
    ++shares[farm.leases->FindDevice(v1::Job())->device.product()];
  }
  return shares;
}

}  // namespace

TEST_CASE("Jobs that may go anywhere are shared by the classes of devices", "[coordinator]") {
  Farm farm;
  Join(farm, "a", "A100");
  Join(farm, "b", "H200");
  Join(farm, "c", "H200");
  // No class of a GPU, so that it gets nothing.
  farm.Idle("cpu");

  CHECK(Shares(farm, 30) == std::map<std::string, int>{{"A100", 10}, {"H200", 20}});
}

TEST_CASE("A job goes to a class with idle workers first", "[coordinator]") {
  Farm farm;
  farm.Submit("f", "j", {.device = TestDevice("A100")});
  const auto busy = Join(farm, "a", "A100");
  Join(farm, "b", "H200");
  REQUIRE_FALSE(busy->lease().empty());

  CHECK(Shares(farm, 3) == std::map<std::string, int>{{"H200", 3}});
}

TEST_CASE("Who joins gets a share of the jobs, not all that others got before", "[coordinator]") {
  Farm farm;
  Join(farm, "a", "A100");
  Shares(farm, 100);
  Join(farm, "b", "H200");

  CHECK(Shares(farm, 10) == std::map<std::string, int>{{"A100", 5}, {"H200", 5}});
}

TEST_CASE("A worker that was not heard for a day is forgotten", "[coordinator]") {
  Farm farm;
  farm.Idle("pod-1");
  farm.Idle("drained");
  REQUIRE_THAT(farm.leases->SetDraining("workers/drained", true).status(), IsOk());
  farm.LoseSilentWorkers();
  farm.clock.Advance(LeaseManager::Options().memory + absl::Minutes(1));
  farm.Idle("pod-2");

  farm.leases->Tick();

  CHECK(rpc::ErrorReason(farm.leases->LookupWorker("workers/pod-1").status()) ==
        "WORKER_NOT_FOUND");
  CHECK(farm.leases->ListWorkers().size() == 1);
  // Whoever drained a host did so until they say otherwise.
  CHECK_THAT(farm.leases->LookupWorker("workers/drained").status(), IsOk());
  CHECK(farm.store.ReadFleet()->workers.size() == 2);
}

TEST_CASE("A worker that has a lease is not forgotten, however long the store was away",
          "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();
  farm.clock.Advance(LeaseManager::Options().memory + absl::Minutes(1));
  farm.Restart();
  farm.Submit("f");

  farm.leases->Tick();
  farm.Completed("w", lease);

  CHECK(farm.results["f"].size() == 1);
}

TEST_CASE("A worker with too little isolation is never given the work", "[coordinator]") {
  Farm farm;
  const auto before = farm.IdleIn(v1::ISOLATION_RESTRICTED, "open");
  farm.SubmitIsolated("f", v1::ISOLATION_CONFINED);
  const auto after = farm.IdleIn(v1::ISOLATION_PROCESS, "wide-open");

  const auto confined = farm.IdleIn(v1::ISOLATION_CONFINED, "confined");

  CHECK(before->is_held());
  CHECK(after->is_held());
  CHECK(confined->value().lease().candidate() == "j/candidates/f");
  CHECK(confined->value().lease().attempt() == 0);
  CHECK(confined->value().lease().evaluation().options().min_isolation() == v1::ISOLATION_CONFINED);
}

TEST_CASE("LeaseManager finds no device on a worker with too little isolation", "[coordinator]") {
  Farm farm;
  v1::Job job;
  job.mutable_evaluation()->set_min_isolation(v1::ISOLATION_CONFINED);

  farm.IdleIn(v1::ISOLATION_RESTRICTED, "open");
  CHECK_FALSE(farm.leases->FindDevice(job));
  CHECK_THAT(farm.leases->WhyNoDevice(job),
             Catch::StartsWith("no worker with isolation confined is there; workers have "
                               "restricted"));
  farm.IdleIn(v1::ISOLATION_CONFINED, "confined");

  CHECK(farm.leases->FindDevice(job));
  CHECK(farm.leases->WhyNoDevice(job).empty());
}

TEST_CASE("A worker that failed is asked again where the others have too little isolation",
          "[coordinator]") {
  Farm farm;
  farm.isolation = v1::ISOLATION_CONFINED;
  farm.SubmitIsolated("f", v1::ISOLATION_CONFINED);
  const std::string lease = farm.Idle("confined")->lease();
  const auto open = farm.IdleIn(v1::ISOLATION_RESTRICTED, "open");

  farm.Completed("confined", lease, CannotWork());
  farm.clock.Advance(LeaseManager::Options().min_rest);

  CHECK(open->is_held());
  CHECK(farm.Idle("confined")->value().lease().attempt() == 1);
}

TEST_CASE("Equal work for two jobs goes to a worker that is isolated enough for one of them",
          "[coordinator]") {
  Farm farm;
  farm.SubmitIsolated("f", v1::ISOLATION_CONFINED, "strict");
  const auto call = farm.IdleIn(v1::ISOLATION_RESTRICTED, "w");
  REQUIRE(call->is_held());

  farm.SubmitIsolated("f", v1::ISOLATION_PROCESS, "lenient");
  farm.Completed("w", call->lease());

  // Else the worker would refuse what it may do.
  CHECK(call->value().lease().evaluation().options().min_isolation() == v1::ISOLATION_PROCESS);
  CHECK(farm.results["f"].size() == 2);
}

TEST_CASE("LeaseManager tells once why work waits, and again when the reason changes",
          "[coordinator]") {
  Farm farm;
  farm.SubmitIsolated("f", v1::ISOLATION_CONFINED);
  farm.leases->Tick();
  CHECK(farm.waits["f"].empty());

  farm.LosePatience();
  farm.leases->Tick();
  farm.IdleIn(v1::ISOLATION_RESTRICTED, "w");
  farm.leases->Tick();
  farm.leases->Tick();

  REQUIRE(farm.waits["f"].size() == 2);
  CHECK_THAT(farm.waits["f"][0], Catch::StartsWith("no worker is connected"));
  CHECK_THAT(farm.waits["f"][1], Catch::StartsWith("no worker with isolation confined is there"));
}

TEST_CASE("LeaseManager does not speak of work that waits for its turn", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();

  farm.clock.Advance(absl::Seconds(9));
  farm.Executing("w", lease);
  farm.LosePatience();

  CHECK(farm.waits.empty());
}

TEST_CASE("Work that one of two jobs may have done is not spoken of", "[coordinator]") {
  Farm farm;
  farm.store.is_full = true;  // So that nothing is granted.
  farm.Idle("w");
  farm.SubmitIsolated("f", v1::ISOLATION_CONFINED, "strict");
  farm.SubmitIsolated("f", v1::ISOLATION_PROCESS, "lenient");

  farm.LosePatience();
  CHECK(farm.waits.empty());
  farm.leases->Abandon("f", "lenient");
  farm.LosePatience();

  CHECK(farm.waits["f"].size() == 1);
}

TEST_CASE("Work whose worker is gone is spoken of once another is due", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  farm.Idle("w");
  farm.LoseSilentWorkers();
  CHECK(farm.waits.empty());

  farm.LosePatience();

  REQUIRE(farm.waits["f"].size() == 1);
  CHECK_THAT(farm.waits["f"][0], Catch::StartsWith("no worker is connected"));
}

}  // namespace mtmc::coordinator

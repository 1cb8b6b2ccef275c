// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/lease_manager.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/coordinator/lease_farm.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;
using testing::StatusIs;

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

TEST_CASE("LeaseManager takes no result of another worker's lease", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();

  const auto forged = farm.Completed("thief", lease);
  CHECK_THAT(forged->response->status(),
             StatusIs(absl::StatusCode::kPermissionDenied, "workers/w"));
  CHECK(rpc::ErrorReason(forged->response->status()) == "LEASE_NOT_YOURS");
  CHECK(farm.results["f"].empty());
  farm.Completed("w", lease);

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

TEST_CASE("LeaseManager keeps the lease of a worker that calls on while the store is full",
          "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();

  farm.store.is_full = true;
  for (int i = 0; i < 5; ++i) {
    farm.clock.Advance(absl::Seconds(8));
    farm.Completed("w", lease);
    farm.leases->Tick();
  }

  CHECK(farm.leases->ListWorkers().at(0).state() == v1::Worker::STATE_RUNNING);
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

TEST_CASE("LeaseManager keeps a late result of work that its job gave up for now",
          "[coordinator]") {
  Farm farm;
  farm.RecordJob("j", v1::Job::STATE_PAUSED);
  farm.Submit("f");
  const std::string late = farm.Idle("w")->lease();
  farm.LoseSilentWorkers();
  farm.leases->Abandon("f", "j");
  SECTION("at once") {}
  SECTION("after the coordinator has looked for what nobody wants") { farm.LoseSilentWorkers(); }
  SECTION("after a restart") { farm.Restart(); }

  const auto call = farm.Completed("w", late);

  CHECK(call->value().has_idle());
  REQUIRE(farm.store.FindEvaluation("f")->has_value());
  CHECK((*farm.store.FindEvaluation("f"))->candidate == "j/candidates/f");
}

TEST_CASE("LeaseManager waits for no late result once the job has ended", "[coordinator]") {
  Farm farm;
  farm.RecordJob("j", v1::Job::STATE_RUNNING);
  farm.Submit("f");
  farm.Idle("w");
  farm.LoseSilentWorkers();
  farm.leases->Abandon("f", "j");
  CHECK_FALSE(farm.store.ReadFleet()->leases.empty());

  farm.RecordJob("j", v1::Job::STATE_CANCELLED);
  farm.LoseSilentWorkers();

  CHECK(farm.store.ReadFleet()->leases.empty());
}

TEST_CASE("LeaseManager stops who has abandoned work in place of a worker that was lost",
          "[coordinator]") {
  Farm farm;
  farm.RecordJob("j", v1::Job::STATE_RUNNING);
  farm.Submit("f");
  farm.Idle("w1");
  farm.LoseSilentWorkers();
  const std::string lease = farm.Idle("w2")->lease();

  farm.leases->Abandon("f", "j");

  CHECK(farm.Executing("w2", lease)->value().has_idle());
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

TEST_CASE("LeaseManager does not grant through a call whose client is gone", "[coordinator]") {
  Farm farm;
  const auto call = farm.Idle("w");

  farm.leases->Disconnect("workers/w", "w-1", "");
  farm.Submit("f");

  CHECK(call->is_held());
  CHECK_FALSE(farm.Idle("w")->lease().empty());
}

}  // namespace mtmc::coordinator

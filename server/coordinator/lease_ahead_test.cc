// SPDX-License-Identifier: Apache-2.0
//
// Leases that LeaseManager grants ahead of their time.
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "common/testing/status_matchers.h"
#include "server/coordinator/lease_farm.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;

}  // namespace

TEST_CASE("LeaseManager grants one lease ahead to a worker that can prepare it", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g", "h"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();

  const auto first = farm.Prefetching("w", lease);
  const auto again = farm.Prefetching("w", lease, first->value().prefetches(0).id());

  CHECK(first->lease() == lease);
  CHECK(first->value().prefetches(0).candidate() == "j/candidates/g");
  CHECK(first->value().prefetches(0).has_evaluation());
  CHECK(again->value().prefetches(0).id() == first->value().prefetches(0).id());
  // Its search is not told before it begins.
  CHECK(farm.granted == 1);
}

TEST_CASE("LeaseManager grants as many leases ahead as a worker can prepare", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g", "h", "i"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();

  const auto first = farm.Prefetching("w", lease, "", 2);
  const auto second = farm.Completed("w", lease);
  const auto refilled = farm.Prefetching("w", second->lease(), "", 2);

  REQUIRE(first->value().prefetches_size() == 2);
  CHECK(first->value().prefetches(0).candidate() == "j/candidates/g");
  CHECK(first->value().prefetches(1).candidate() == "j/candidates/h");
  // In their order, and others follow.
  CHECK(second->lease() == first->value().prefetches(0).id());
  REQUIRE(refilled->value().prefetches_size() == 2);
  CHECK(refilled->value().prefetches(0).id() == first->value().prefetches(1).id());
  CHECK(refilled->value().prefetches(1).candidate() == "j/candidates/i");
  CHECK(farm.granted == 2);
}

TEST_CASE("An idle worker takes over what would be begun last", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g", "h"}) farm.Submit(key);
  const std::string lease = farm.Idle("busy")->lease();
  farm.Prefetching("busy", lease, "", 2);

  const auto taken = farm.Idle("idle");
  const auto told = farm.Prefetching("busy", lease, "", 2);

  CHECK(taken->value().lease().candidate() == "j/candidates/h");
  REQUIRE(told->value().prefetches_size() == 1);
  CHECK(told->value().prefetches(0).candidate() == "j/candidates/g");
}

TEST_CASE("A lease held ahead becomes the present one when that is completed", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();
  const std::string ahead = farm.Prefetching("w", lease)->value().prefetches(0).id();

  const auto next = farm.Completed("w", lease);
  farm.Completed("w", next->lease());

  CHECK(next->lease() == ahead);
  CHECK(next->value().prefetches().empty());
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

  CHECK(farm.Prefetching("busy", lease)->value().prefetches().empty());
  CHECK(farm.Idle("idle")->value().lease().candidate() == "j/candidates/g");
}

TEST_CASE("LeaseManager grants nothing ahead to a worker that cannot prepare", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();

  CHECK(farm.Executing("w", lease)->value().prefetches().empty());
}

TEST_CASE("A worker that becomes idle takes over what another holds ahead", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const std::string lease = farm.Idle("busy")->lease();
  const std::string ahead = farm.Prefetching("busy", lease)->value().prefetches(0).id();

  const auto taken = farm.Idle("idle");
  const auto told = farm.Prefetching("busy", lease, ahead);
  farm.Completed("idle", taken->lease());
  const auto next = farm.Completed("busy", lease);

  CHECK(taken->value().lease().candidate() == "j/candidates/g");
  CHECK(taken->lease() != ahead);
  CHECK(taken->value().lease().attempt() == 0);
  CHECK(told->value().prefetches().empty());
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
  const std::string ahead = farm.Prefetching("w", lease)->value().prefetches(0).id();

  farm.Restart();
  const auto before_search = farm.Prefetching("w", lease, ahead);
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const auto next = farm.Completed("w", lease);

  CHECK(before_search->lease() == lease);
  CHECK(before_search->value().prefetches(0).id() == ahead);
  CHECK(next->lease() == ahead);
  CHECK(next->value().lease().has_evaluation());
}

TEST_CASE("A draining worker gives back what it holds ahead", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();
  const std::string ahead = farm.Prefetching("w", lease)->value().prefetches(0).id();

  REQUIRE_THAT(farm.leases->SetDraining("workers/w", true).status(), IsOk());
  const auto told = farm.Prefetching("w", lease, ahead);

  CHECK(told->value().prefetches().empty());
  CHECK(farm.Idle("w2")->value().lease().candidate() == "j/candidates/g");
}

TEST_CASE("A lease that was begun ahead is called off like any other", "[coordinator]") {
  Farm farm;
  for (const char* key : {"f", "g"}) farm.Submit(key);
  const std::string lease = farm.Idle("w")->lease();
  const std::string ahead = farm.Prefetching("w", lease)->value().prefetches(0).id();
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
  const std::string ahead = farm.Prefetching("w", lease)->value().prefetches(0).id();

  farm.leases->Abandon("g", "j");
  const auto told = farm.Prefetching("w", lease, ahead);

  CHECK(told->value().prefetches().empty());
  CHECK(farm.Completed("w", lease)->value().has_idle());
}

TEST_CASE("LeaseManager grants nothing ahead to a worker with too little isolation",
          "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  farm.SubmitIsolated("g", v1::ISOLATION_CONFINED);
  const std::string lease = farm.Idle("w")->lease();

  CHECK(farm.Prefetching("w", lease)->value().prefetches().empty());
}

TEST_CASE("An idle worker with too little isolation keeps nobody from holding work ahead",
          "[coordinator]") {
  Farm farm;
  farm.isolation = v1::ISOLATION_CONFINED;
  for (const char* key : {"f", "g"}) farm.SubmitIsolated(key, v1::ISOLATION_CONFINED);
  const std::string lease = farm.Idle("busy")->lease();
  const auto open = farm.IdleIn(v1::ISOLATION_RESTRICTED, "open");

  const auto told = farm.Prefetching("busy", lease);
  const auto again = farm.IdleIn(v1::ISOLATION_RESTRICTED, "open");

  CHECK(open->value().has_idle());
  CHECK(told->value().prefetches(0).candidate() == "j/candidates/g");
  CHECK(again->is_held());
  CHECK_FALSE(farm.Prefetching("busy", lease, told->value().prefetches(0).id())
                  ->value()
                  .prefetches()
                  .empty());
}

TEST_CASE("A worker whose isolation has fallen gives back what it holds ahead", "[coordinator]") {
  Farm farm;
  farm.isolation = v1::ISOLATION_CONFINED;
  for (const char* key : {"f", "g"}) farm.SubmitIsolated(key, v1::ISOLATION_CONFINED);
  const std::string lease = farm.Idle("w")->lease();
  const std::string ahead = farm.Prefetching("w", lease)->value().prefetches(0).id();
  REQUIRE_FALSE(ahead.empty());

  farm.isolation = v1::ISOLATION_RESTRICTED;
  const auto next = farm.Completed("w", lease);

  CHECK(next->value().has_idle());
  CHECK(farm.IdleIn(v1::ISOLATION_CONFINED, "other")->value().lease().attempt() == 0);
}

}  // namespace mtmc::coordinator

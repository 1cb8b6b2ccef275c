// SPDX-License-Identifier: Apache-2.0
//
// Whose a worker's name and a lease are.
#include <catch2/catch.hpp>
#include <string>

#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/coordinator/lease_farm.h"

namespace mtmc::coordinator {
namespace {

using testing::StatusIs;

// Why the coordinator refused the call; empty if it did not.
std::string Refusal(const std::shared_ptr<Call>& call) {
  if (call->is_held() || call->response->ok()) return "";
  CHECK(absl::IsPermissionDenied(call->response->status()));
  return rpc::ErrorReason(call->response->status());
}

// The call of a worker that `identity` runs.
template <class... Arguments>
std::shared_ptr<Call> As(Farm& farm, const std::string& identity,
                         std::shared_ptr<Call> (Farm::*call)(Arguments...),
                         std::type_identity_t<Arguments>... arguments) {
  farm.identity = identity;
  return (farm.*call)(arguments...);
}

TEST_CASE("A worker's name is nobody else's while it lives", "[coordinator]") {
  Farm farm;
  const auto mine = As(farm, "alice", &Farm::Idle, "w", "a");

  const auto theirs = As(farm, "mallory", &Farm::Idle, "w", "m");

  CHECK(Refusal(theirs) == "WORKER_NAME_TAKEN");
  CHECK_THAT(theirs->response->status(),
             StatusIs(absl::StatusCode::kPermissionDenied, "give each worker its own --name"));
  // The call of the first is held still, and work goes to it.
  REQUIRE(mine->is_held());
  farm.Submit("f");
  CHECK_FALSE(mine->lease().empty());
}

TEST_CASE("A worker that is refused its name ends no call of who has it", "[coordinator]") {
  Farm farm;
  const auto mine = As(farm, "alice", &Farm::Idle, "w", "a");

  farm.leases->Disconnect("workers/w", "a", "mallory");
  farm.Submit("f");

  CHECK_FALSE(mine->lease().empty());
}

TEST_CASE("A worker that starts again takes its own name over", "[coordinator]") {
  Farm farm;
  const auto first = As(farm, "alice", &Farm::Idle, "w", "a");

  const auto second = As(farm, "alice", &Farm::Idle, "w", "b");

  CHECK(rpc::ErrorReason(first->response->status()) == "WORKER_REPLACED");
  CHECK(second->is_held());
}

TEST_CASE("The name of a worker that was silent for its time is free", "[coordinator]") {
  Farm farm;
  As(farm, "alice", &Farm::Idle, "w", "a");
  // Its call is answered first.
  farm.LoseSilentWorkers();
  farm.LoseSilentWorkers();

  const auto theirs = As(farm, "bob", &Farm::Idle, "w", "b");
  const auto late = As(farm, "alice", &Farm::Idle, "w", "a");

  CHECK(theirs->is_held());
  CHECK(Refusal(late) == "WORKER_NAME_TAKEN");
}

TEST_CASE("The name of a worker that said that it leaves is free at once", "[coordinator]") {
  Farm farm;
  v1::SynchronizeRequest leaving = farm.Request("w", "a");
  leaving.set_is_leaving(true);
  farm.identity = "alice";
  farm.Send(leaving);

  CHECK(As(farm, "bob", &Farm::Idle, "w", "b")->is_held());
}

TEST_CASE("A worker reports for no lease of another identity", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = As(farm, "alice", &Farm::Idle, "w", "")->lease();

  // By another name, and by the same once it is free.
  CHECK(Refusal(As(farm, "mallory", &Farm::Executing, "v", lease)) == "LEASE_NOT_YOURS");
  CHECK(Refusal(As(farm, "mallory", &Farm::Completed, "v", lease, Measured())) ==
        "LEASE_NOT_YOURS");
  farm.LoseSilentWorkers();
  CHECK(Refusal(As(farm, "mallory", &Farm::Executing, "w", lease)) == "LEASE_NOT_YOURS");
  CHECK(Refusal(As(farm, "mallory", &Farm::Completed, "w", lease, Measured())) ==
        "LEASE_NOT_YOURS");

  CHECK(farm.results["f"].empty());
}

TEST_CASE("A lost lease is taken up by its own worker only", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = As(farm, "alice", &Farm::Idle, "w", "")->lease();
  farm.LoseSilentWorkers();

  // The same identity may run many workers, and each has its own leases.
  CHECK(Refusal(As(farm, "alice", &Farm::Executing, "v", lease)) == "LEASE_NOT_YOURS");
  CHECK(As(farm, "alice", &Farm::Executing, "w", lease)->lease() == lease);
}

TEST_CASE("Work that a job gave up for now is reported by who had it only", "[coordinator]") {
  Farm farm;
  farm.RecordJob("j", v1::Job::STATE_PAUSED);
  farm.Submit("f");
  const std::string lease = As(farm, "alice", &Farm::Idle, "w", "")->lease();
  farm.LoseSilentWorkers();
  farm.leases->Abandon("f", "j");

  CHECK(Refusal(As(farm, "mallory", &Farm::Completed, "w", lease, Measured())) ==
        "LEASE_NOT_YOURS");
  CHECK_FALSE(farm.store.FindEvaluation("f")->has_value());
}

TEST_CASE("Names and leases are whose they were after a restart", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = As(farm, "alice", &Farm::Idle, "w", "")->lease();
  As(farm, "alice", &Farm::Idle, "idle", "");

  farm.Restart();
  farm.Submit("f");

  CHECK(Refusal(As(farm, "mallory", &Farm::Idle, "w", "m")) == "WORKER_NAME_TAKEN");
  CHECK(Refusal(As(farm, "mallory", &Farm::Idle, "idle", "m")) == "WORKER_NAME_TAKEN");
  farm.LoseSilentWorkers();
  CHECK(Refusal(As(farm, "mallory", &Farm::Completed, "w", lease, Measured())) ==
        "LEASE_NOT_YOURS");
  // What was lost waits for anybody.
  CHECK_FALSE(As(farm, "mallory", &Farm::Idle, "idle", "m")->lease().empty());
}

TEST_CASE("What was begun without a guard goes on with one", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w")->lease();
  farm.Restart();
  farm.Submit("f");

  const auto done = As(farm, "alice", &Farm::Completed, "w", lease, Measured());

  CHECK(done->response->ok());
  CHECK(farm.results["f"].size() == 1);
  CHECK(Refusal(As(farm, "mallory", &Farm::Idle, "w", "m")) == "WORKER_NAME_TAKEN");
}

}  // namespace
}  // namespace mtmc::coordinator

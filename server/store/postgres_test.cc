// SPDX-License-Identifier: Apache-2.0
//
// What PostgresJobStore promises beyond the contract of JobStore: it outlives its
// server and its connections.
#include <atomic>
#include <catch2/catch.hpp>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/store/postgres_job_store.h"
#include "server/store/postgres_server.h"
#include "server/store/test_records.h"

namespace mtmc::store {
namespace {

using testing::IsOk;
using testing::StatusIs;

// For what a loaded host does in a second.
constexpr absl::Duration kPatience = absl::Seconds(60);

// A server, or nothing and the reason why the test is skipped.
std::optional<PostgresServer> StartServer() {
  absl::StatusOr<PostgresServer> server = PostgresServer::Start();
  if (absl::IsNotFound(server.status())) {
    std::cout << "SKIPPED: " << server.status().message() << std::endl;
    return std::nullopt;
  }
  REQUIRE_THAT(server.status(), IsOk());
  return *std::move(server);
}

// Repeats a Write while the store is UNAVAILABLE, as its callers do.
absl::Status CommitAtLast(JobStore& store, const Write& write) {
  const absl::Time deadline = absl::Now() + kPatience;
  absl::Status status = store.Commit(write);
  while (absl::IsUnavailable(status) && absl::Now() < deadline) {
    std::this_thread::yield();
    status = store.Commit(write);
  }
  return status;
}

absl::Status Late() { return absl::DeadlineExceededError("the group was not written"); }

// Waits until what was committed survives.
bool IsFlushed(JobStore& store) {
  const auto is_flushed = std::make_shared<absl::Notification>();
  store.AfterFlush([is_flushed] { is_flushed->Notify(); });
  return is_flushed->WaitForNotificationWithTimeout(kPatience);
}

// Kills the server so many times, and starts it again, while others write.
void KillOften(PostgresServer& server, int times) {
  std::mt19937 random(std::random_device{}());
  std::uniform_int_distribution<int> delay_us(0, 20'000);
  for (int kill = 0; kill < times; ++kill) {
    // Some more is written first.
    const absl::Time until = absl::Now() + absl::Microseconds(delay_us(random));
    while (absl::Now() < until) std::this_thread::yield();
    server.Kill();
    CHECK_THAT(server.StartAgain(), IsOk());
  }
}

}  // namespace

TEST_CASE("PostgresJobStore goes on after its server was killed and started again", "[store]") {
  auto server = StartServer();
  if (!server) return;
  const auto store = *PostgresJobStore::Open(*server->CreateDatabase());
  REQUIRE_THAT(store->Commit({.job_name = kJob, .new_job = MakeJob(kJob)}), IsOk());

  server->Kill();
  const absl::Status write = store->Commit({.job_name = kJob, .events = {Notice("x")}});
  const absl::Status read = store->LookupJob(kJob).status();
  REQUIRE_THAT(server->StartAgain(), IsOk());

  CHECK_THAT(write, StatusIs(absl::StatusCode::kUnavailable));
  CHECK(rpc::ErrorReason(read) == "STORE_UNAVAILABLE");
  CHECK_THAT(store->LookupJob(kJob).status(), IsOk());
  CHECK_THAT(store->Commit({.job_name = kJob, .events = {Notice("y")}}), IsOk());
}

TEST_CASE("PostgresJobStore writes a repeated Write once however its server dies", "[store]") {
  constexpr int kKills = 6;
  auto server = StartServer();
  if (!server) return;
  const auto store = *PostgresJobStore::Open(*server->CreateDatabase());
  REQUIRE_THAT(store->Commit({.job_name = kJob, .new_job = MakeJob(kJob)}), IsOk());
  std::atomic<bool> is_over = false;
  int committed = 0;
  absl::Status failure;

  std::thread writer([&] {
    while (!is_over && failure.ok()) {
      failure.Update(
          CommitAtLast(*store, {.job_name = kJob, .events = {Notice(std::to_string(committed))}}));
      if (failure.ok()) ++committed;
    }
  });
  KillOften(*server, kKills);
  is_over = true;
  writer.join();

  REQUIRE_THAT(failure, IsOk());
  const auto events = *store->ReadEvents(kJob, 0, 1'000'000);
  REQUIRE(events.size() == static_cast<size_t>(committed));
  for (int i = 0; i < committed; ++i) {
    CHECK(events[static_cast<size_t>(i)].notice() == std::to_string(i));
  }
}

TEST_CASE("However its server dies, PostgresJobStore writes each commit of a group once",
          "[store]") {
  constexpr int kKills = 6;
  auto server = StartServer();
  if (!server) return;
  const auto store = *PostgresJobStore::Open(*server->CreateDatabase());
  store->BeginGroups();
  std::atomic<bool> is_over = false;
  int committed = 0;
  absl::Status failure;

  std::thread writer([&] {
    failure = CommitAtLast(*store, {.job_name = kJob, .new_job = MakeJob(kJob)});
    while (!is_over && failure.ok()) {
      failure.Update(
          CommitAtLast(*store, {.job_name = kJob, .events = {Notice(std::to_string(committed))}}));
      // So that there is more than one group.
      if (failure.ok() && ++committed % 50 == 0 && !IsFlushed(*store)) failure = Late();
    }
  });
  KillOften(*server, kKills);
  is_over = true;
  writer.join();
  REQUIRE(IsFlushed(*store));
  store->EndGroups();

  REQUIRE_THAT(failure, IsOk());
  CHECK(committed > 0);
  const auto events = *store->ReadEvents(kJob, 0, 1'000'000);
  REQUIRE(events.size() == static_cast<size_t>(committed));
  for (int i = 0; i < committed; ++i) {
    CHECK(events[static_cast<size_t>(i)].notice() == std::to_string(i));
  }
}

TEST_CASE("PostgresJobStore has everything again when another process opens it", "[store]") {
  auto server = StartServer();
  if (!server) return;
  const std::string address = *server->CreateDatabase();
  const auto first = *PostgresJobStore::Open(address);
  REQUIRE_THAT(first->Commit({.job_name = kJob,
                              .new_job = MakeJob(kJob),
                              .events = {Notice(std::string("nul \0 byte", 10))}}),
               IsOk());

  const auto second = PostgresJobStore::Open(address);

  REQUIRE_THAT(second.status(), IsOk());
  CHECK((*second)->ReadEvents(kJob, 0, 10)->front().notice().size() == 10);
}

TEST_CASE("PostgresJobStore brings the schema up to date once when several start", "[store]") {
  auto server = StartServer();
  if (!server) return;
  const std::string address = *server->CreateDatabase();
  std::vector<absl::Status> statuses(6);

  {
    std::vector<std::jthread> threads;
    for (absl::Status& status : statuses) {
      threads.emplace_back([&] { status = PostgresJobStore::Open(address).status(); });
    }
  }

  for (const absl::Status& status : statuses) CHECK_THAT(status, IsOk());
}

TEST_CASE("PostgresJobStore says why it cannot be opened", "[store]") {
  const absl::Status rubbish = PostgresJobStore::Open("postgresql://h/db?no_such=1").status();
  const absl::Status absent =
      PostgresJobStore::Open("host=/nonexistent user=mtmc dbname=x").status();

  CHECK(rpc::ErrorReason(rubbish) == "INVALID_STORE");
  CHECK_THAT(rubbish, StatusIs(absl::StatusCode::kInvalidArgument, "no_such"));
  CHECK(rpc::ErrorReason(absent) == "STORE_UNAVAILABLE");
  CHECK_THAT(absent, StatusIs(absl::StatusCode::kUnavailable, "/nonexistent"));
}

TEST_CASE("The address of a PostgreSQL store is shown without its password", "[store]") {
  const auto shown = ShownPostgresAddress("postgresql://u:secret@db.example:5433/jobs");

  REQUIRE_THAT(shown.status(), IsOk());
  CHECK(*shown == "u@db.example:5433/jobs");
}

}  // namespace mtmc::store

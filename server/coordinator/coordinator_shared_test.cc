// SPDX-License-Identifier: Apache-2.0
//
// Two real coordinators over one real PostgreSQL: whichever owns the jobs is killed with
// SIGKILL again and again while a job runs.
#include <catch2/catch.hpp>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/temp_dir.h"
#include "common/rpc/server.h"
#include "common/testing/status_matchers.h"
#include "server/coordinator/crash_parts.h"
#include "server/store/postgres_job_store.h"
#include "server/store/postgres_server.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;

// Short, so that the test is; an owner that is only late is no harm.
constexpr char kPatienceMs[] = "1500";
constexpr absl::Duration kDeadline = absl::Seconds(60);

// The database that the coordinators share, and what each of them needs.
struct SharedWorld {
  store::PostgresServer server;
  std::string address;
  base::TempDir folder = *base::TempDir::Create("shared");
  std::unique_ptr<store::PostgresJobStore> store = *store::PostgresJobStore::Open(address);

  std::unique_ptr<CrashProcess> StartCoordinator(const std::string& gateway,
                                                 const std::string& name,
                                                 const std::vector<std::string>& patience = {
                                                     "--takeover-after-ms", kPatienceMs}) {
    const std::string path = folder.path().string();
    std::filesystem::create_directory(path + "/" + name);
    std::vector<std::string> flags = {"--store", address, "--artifacts", path + "/artifacts"};
    flags.insert(flags.end(), patience.begin(), patience.end());
    return std::make_unique<CrashProcess>(gateway, path + "/" + name, flags);
  }

  // Waits until another epoch than `before` has begun.
  store::OwnerRecord AwaitOwner(int64_t before) {
    const absl::Time deadline = absl::Now() + kDeadline;
    while (absl::Now() < deadline) {
      const auto owner = store->ReadOwner();
      if (owner.ok() && owner->epoch > before && !owner->name.empty()) return *owner;
      std::this_thread::yield();
    }
    FAIL("nobody took over");
    return {};
  }
};

std::optional<SharedWorld> MakeWorld() {
  absl::StatusOr<store::PostgresServer> server = store::PostgresServer::Start();
  if (absl::IsNotFound(server.status())) {
    std::cout << "SKIPPED: " << server.status().message() << std::endl;
    return std::nullopt;
  }
  REQUIRE_THAT(server.status(), IsOk());
  const std::string address = *server->CreateDatabase();
  return SharedWorld{.server = *std::move(server), .address = address};
}

}  // namespace

TEST_CASE("Two coordinators lose and double no evaluation while their owner is killed",
          "[coordinator]") {
  constexpr int kKills = 6;
  auto world = MakeWorld();
  if (!world) return;
  CrashGateway gateway;
  const auto server = rpc::RpcServer::Create({.services = {&gateway}});
  REQUIRE_THAT(server.status(), IsOk());
  std::vector<std::unique_ptr<CrashProcess>> all;
  for (const char* name : {"a", "b"}) {
    all.push_back(world->StartCoordinator((*server)->address(), name));
  }
  const std::string either = absl::StrCat("ipv4:", all[0]->endpoint(), ",", all[1]->endpoint());
  const std::string other = absl::StrCat("ipv4:", all[1]->endpoint(), ",", all[0]->endpoint());
  CreateCrashJob(either);
  const CrashWorker worker(either);
  std::vector<v1::JobEvent> watched;
  std::thread watcher([&] { watched = WatchCrashJob(other); });
  std::mt19937 random(std::random_device{}());
  std::uniform_int_distribution<int> delay_us(0, 200'000);

  int64_t epoch = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    const store::OwnerRecord owner = world->AwaitOwner(epoch);
    epoch = owner.epoch;
    for (const auto& process : all) {
      if (process->endpoint() != owner.address) continue;
      process->KillAfter(absl::Microseconds(delay_us(random)));
      process->Start();
    }
  }
  watcher.join();

  CheckCrashEvents(watched);
  CheckCrashEvents(WatchCrashJob(either));
  for (const auto& [name, count] : worker.executions()) {
    INFO(name);
    CHECK(count == 1);
  }
}

TEST_CASE("A killed owner is followed within ten seconds by the flags that nobody sets",
          "[coordinator]") {
  // docs/coordinators.md: five seconds of silence, a look each second, and a start.
  constexpr absl::Duration kPromised = absl::Seconds(10);
  auto world = MakeWorld();
  if (!world) return;
  CrashGateway gateway;
  const auto server = rpc::RpcServer::Create({.services = {&gateway}});
  REQUIRE_THAT(server.status(), IsOk());
  std::vector<std::unique_ptr<CrashProcess>> all;
  for (const char* name : {"a", "b"}) {
    all.push_back(world->StartCoordinator((*server)->address(), name, /*patience=*/{}));
  }
  const store::OwnerRecord first = world->AwaitOwner(0);
  const size_t killed = all[0]->endpoint() == first.address ? 0 : 1;
  const std::string left = all[1 - killed]->endpoint();

  all[killed]->KillAfter(absl::ZeroDuration());
  const absl::Time begin = absl::Now();
  // Only the owner creates jobs, so that the call waits for the next one.
  CreateCrashJob(absl::StrCat("ipv4:", left));
  const absl::Duration taken = absl::Now() - begin;

  CAPTURE(absl::FormatDuration(taken));
  CHECK(taken < kPromised);
  CHECK(world->AwaitOwner(first.epoch).address == left);
}

TEST_CASE("Two coordinators go on after their PostgreSQL was killed", "[coordinator]") {
  auto world = MakeWorld();
  if (!world) return;
  CrashGateway gateway;
  const auto server = rpc::RpcServer::Create({.services = {&gateway}});
  REQUIRE_THAT(server.status(), IsOk());
  const auto first = world->StartCoordinator((*server)->address(), "a");
  const auto second = world->StartCoordinator((*server)->address(), "b");
  const std::string either = absl::StrCat("ipv4:", second->endpoint(), ",", first->endpoint());
  CreateCrashJob(either);
  const CrashWorker worker(either);
  std::vector<v1::JobEvent> watched;
  std::thread watcher([&] { watched = WatchCrashJob(either); });

  for (int kill = 0; kill < 2; ++kill) {
    world->server.Kill();
    CHECK_THAT(world->server.StartAgain(), IsOk());
  }
  watcher.join();

  CheckCrashEvents(watched);
  for (const auto& [name, count] : worker.executions()) {
    INFO(name);
    CHECK(count == 1);
  }
}

}  // namespace mtmc::coordinator

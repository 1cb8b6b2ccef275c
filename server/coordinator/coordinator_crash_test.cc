// SPDX-License-Identifier: Apache-2.0
//
// The real mtmc-coordinator, killed with SIGKILL at random moments while a job
// runs, against a gateway and a worker in this process.
#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "common/base/temp_dir.h"
#include "common/rpc/server.h"
#include "common/testing/status_matchers.h"
#include "server/coordinator/crash_parts.h"

namespace mtmc::coordinator {

using testing::IsOk;

TEST_CASE("mtmc-coordinator loses and doubles no evaluation over 50 kills", "[coordinator]") {
  constexpr int kKills = 50;
  CrashGateway gateway;
  const auto server = rpc::RpcServer::Create({.services = {&gateway}});
  REQUIRE_THAT(server.status(), IsOk());
  const auto folder = *base::TempDir::Create("crash");
  const std::string path = folder.path().string();
  CrashProcess coordinator((*server)->address(), path, {"--data-dir", path + "/data"});
  CreateCrashJob(coordinator.endpoint());
  const CrashWorker worker(coordinator.endpoint());
  std::mt19937 random(7);
  std::uniform_int_distribution<int> delay_us(0, 30'000);

  for (int kill = 0; kill < kKills; ++kill) {
    coordinator.KillAfter(absl::Microseconds(delay_us(random)));
    coordinator.Start();
  }

  CheckCrashEvents(WatchCrashJob(coordinator.endpoint()));
  for (const auto& [name, count] : worker.executions()) {
    INFO(name);
    CHECK(count == 1);
  }
}

}  // namespace mtmc::coordinator

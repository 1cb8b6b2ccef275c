// SPDX-License-Identifier: Apache-2.0
//
// What a turn of the fleet costs with much to do. Not part of any suite:
//   mtmc_coordinator_test "[!benchmark]"
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "server/coordinator/lease_farm.h"

namespace mtmc::coordinator {
namespace {

constexpr int kJobs = 1000;
constexpr int kTasksPerJob = 5;
constexpr int kWorkers = 100;
constexpr int kTurns = 100;

double MillisecondsOf(int turns, const std::function<void()>& turn) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < turns; ++i) turn();
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - start;
  return all.count() / turns;
}

TEST_CASE("A tick and a result with 5,000 tasks and 100 workers", "[.][!benchmark]") {
  Farm farm;
  std::vector<std::string> leases;
  for (int i = 0; i < kWorkers; ++i) farm.Idle("w" + std::to_string(i));
  for (int i = 0; i < kJobs * kTasksPerJob; ++i) {
    farm.Submit("k" + std::to_string(i), "j" + std::to_string(i % kJobs));
  }
  for (int i = 0; i < kWorkers; ++i) leases.push_back(farm.Idle("w" + std::to_string(i))->lease());

  const double tick = MillisecondsOf(kTurns, [&] {
    farm.clock.Advance(absl::Milliseconds(50));
    farm.leases->Tick();
  });
  int worker = 0;
  const double result = MillisecondsOf(kTurns, [&] {
    const std::string name = "w" + std::to_string(worker);
    farm.Completed(name, leases[static_cast<size_t>(worker)]);
    leases[static_cast<size_t>(worker)] = farm.Idle(name)->lease();
    worker = (worker + 1) % kWorkers;
  });

  WARN("tick " << tick << " ms, result and next lease " << result << " ms");
}

}  // namespace
}  // namespace mtmc::coordinator

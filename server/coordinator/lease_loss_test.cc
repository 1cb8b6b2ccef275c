// SPDX-License-Identifier: Apache-2.0
//
// Whose fault it is that a worker is gone.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "server/coordinator/lease_farm.h"

namespace mtmc::coordinator {
namespace {

bool IsCrash(const v1::LeaseResult& result) {
  return result.evaluation().failure().kind() == v1::Failure::KIND_CRASH;
}

// A worker takes what is there, says so, and is never heard again.
void DieRunning(Farm& farm, const std::string& worker) {
  const std::string lease = farm.Idle(worker)->lease();
  REQUIRE_FALSE(lease.empty());
  farm.Executing(worker, lease);
  farm.LoseSilentWorkers();
}

// A worker that has nothing, or does not go on with it, says that it is about to exit.
std::shared_ptr<Call> Leave(Farm& farm, const std::string& worker,
                            const std::string& instance = "") {
  v1::SynchronizeRequest request = farm.Request(worker, instance);
  request.set_is_leaving(true);
  return farm.Send(request);
}

// A worker cannot do what it is given, if anything, and a moment passes. Whether it was.
bool FailWhatComes(Farm& farm, const std::string& worker) {
  const auto call = farm.Idle(worker);
  farm.clock.Advance(absl::Milliseconds(100));
  farm.leases->Tick();
  if (call->lease().empty()) return false;
  farm.Completed(worker, call->lease(), CannotWork());
  farm.leases->Tick();
  return true;
}

// Jobs of one evaluation after another, and workers that are killed at random moments and
// come back as new processes a second later. In steps of a tenth of a second.
class KilledFarm {
 public:
  struct Options {
    uint32_t seed = 1;
    int workers = 6;
    // Mean life of a worker.
    double life_seconds = 4;
    int jobs = 100;
    int evaluations = 12;
    // Of a thousand evaluations as many kill the worker that runs them.
    int killers = 0;
  };

  explicit KilledFarm(const Options& options) : options_(options), random_(options.seed) {
    for (int i = 0; i < options.workers; ++i) workers_["w" + std::to_string(i)] = {};
    for (int i = 0; i < options.jobs; ++i) SubmitNext("j" + std::to_string(i));
  }

  // Everybody's work is done.
  void Run() {
    for (int step = 0; step < 200'000 && num_done_ < Total(); ++step) {
      farm_.clock.Advance(absl::Milliseconds(100));
      for (auto& [name, worker] : workers_) Step(name, worker);
      farm_.leases->Tick();
      for (const auto& [key, results] : farm_.results) {
        if (!seen_.insert(key).second) continue;
        ++num_done_;
        SubmitNext(key.substr(0, key.find('-')));
      }
    }
    REQUIRE(num_done_ == Total());
  }

  int kills() const { return num_kills_; }

  // How many of those that do or do not kill have failed.
  int Condemned(bool is_killer) const {
    int count = 0;
    for (const auto& [key, results] : farm_.results) {
      if (IsKiller(key) == is_killer && IsCrash(results.front())) ++count;
    }
    return count;
  }

  int Killers() const {
    int count = 0;
    for (const auto& [key, results] : farm_.results) count += IsKiller(key) ? 1 : 0;
    return count;
  }

  int most_runs_of_a_killer() const { return most_runs_of_a_killer_; }

 private:
  struct Worker {
    int instance = 0;
    std::string lease;
    std::string key;
    int steps_left = 0;
    // Not there for so many steps.
    int away = 0;
  };

  int Total() const { return options_.jobs * options_.evaluations; }

  bool IsKiller(const std::string& key) const {
    return static_cast<int>(std::hash<std::string>()(key) % 1000) < options_.killers;
  }

  void SubmitNext(const std::string& job) {
    const int next = submitted_[job]++;
    if (next < options_.evaluations) farm_.Submit(job + "-" + std::to_string(next), job);
  }

  void Step(const std::string& name, Worker& worker) {
    if (worker.away > 0 && --worker.away > 0) return;
    const bool is_chance = Uniform() < 1 - std::exp(-0.1 / options_.life_seconds);
    const bool is_killed = !worker.lease.empty() && IsKiller(worker.key) && worker.steps_left <= 5;
    if (is_chance || is_killed) {
      ++num_kills_;
      farm_.leases->Disconnect("workers/" + name, Instance(name, worker), "");
      worker = {.instance = worker.instance + 1, .away = 10};
      return;
    }
    v1::SynchronizeRequest request = farm_.Request(name, Instance(name, worker));
    request.set_most_prefetched(1);
    if (!worker.lease.empty() && --worker.steps_left <= 0) {
      request.mutable_completed()->set_lease_id(worker.lease);
      *request.mutable_completed()->mutable_result() = Measured();
    } else if (!worker.lease.empty()) {
      request.mutable_executing()->set_lease_id(worker.lease);
    }
    const auto call = farm_.Send(request);
    if (call->is_held() || !call->response->ok() || call->lease() == worker.lease) return;
    worker.lease = call->lease();
    if (worker.lease.empty()) return;
    const std::string& candidate = call->value().lease().candidate();
    worker.key = candidate.substr(candidate.rfind('/') + 1);
    // Between 0.3 and 2 seconds.
    worker.steps_left = 3 + static_cast<int>(Uniform() * 18);
    if (IsKiller(worker.key)) {
      most_runs_of_a_killer_ = std::max(most_runs_of_a_killer_, ++runs_[worker.key]);
    }
  }

  static std::string Instance(const std::string& name, const Worker& worker) {
    return name + "-" + std::to_string(worker.instance);
  }

  double Uniform() { return std::uniform_real_distribution<double>()(random_); }

  const Options options_;
  std::mt19937 random_;
  Farm farm_;
  std::map<std::string, Worker> workers_;
  std::map<std::string, int> submitted_;
  std::map<std::string, int> runs_;
  std::set<std::string> seen_;
  int num_done_ = 0;
  int num_kills_ = 0;
  int most_runs_of_a_killer_ = 0;
};

}  // namespace

TEST_CASE("Work that three workers were lost with in a quiet fleet has crashed them",
          "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  for (const char* worker : {"w1", "w2", "w3"}) DieRunning(farm, worker);

  REQUIRE(farm.results["f"].size() == 1);
  CHECK(IsCrash(farm.results["f"][0]));
  CHECK(farm.results["f"][0].evaluation().failure().message() == "worker lost 3 times");
  CHECK(farm.Idle("w4")->is_held());
}

TEST_CASE("Work that takes down the only worker is found out", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  for (int i = 0; i < 3; ++i) DieRunning(farm, "w");

  REQUIRE(farm.results["f"].size() == 1);
  CHECK(IsCrash(farm.results["f"][0]));
}

TEST_CASE("Losing a worker that has not begun is no fault of the work", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  for (const char* worker : {"w1", "w2", "w3", "w4"}) {
    REQUIRE_FALSE(farm.Idle(worker)->lease().empty());
    farm.LoseSilentWorkers();
  }

  CHECK(farm.results["f"].empty());
}

TEST_CASE("Losing a worker that prepares other work too is no fault of either", "[coordinator]") {
  Farm farm;
  farm.Submit("a");
  const std::string lease = farm.Idle("w1")->lease();
  farm.Submit("b");
  REQUIRE(farm.Prefetching("w1", lease)->value().prefetches_size() == 1);
  farm.LoseSilentWorkers();
  for (const char* worker : {"w2", "w3"}) DieRunning(farm, worker);

  CHECK(farm.results.empty());
}

TEST_CASE("Work that a lost worker had runs alone from then on", "[coordinator]") {
  Farm farm;
  farm.Submit("a");
  const std::string lost = farm.Idle("w1")->lease();
  farm.Submit("b");
  farm.Prefetching("w1", lost);
  farm.LoseSilentWorkers();

  const std::string lease = farm.Idle("w2")->lease();

  CHECK(farm.Prefetching("w2", lease)->value().prefetches().empty());
  farm.Submit("c");
  CHECK(farm.Prefetching("w2", lease)->value().prefetches().empty());
}

TEST_CASE("Work goes to another worker than the one that was lost with it", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w1")->lease();
  farm.Executing("w1", lease);
  const auto other = farm.Idle("w2");

  const auto again = farm.Idle("w1", "w1-again");

  CHECK(again->is_held());
  CHECK_FALSE(other->lease().empty());
}

TEST_CASE("A worker that is quarantined before it begins has lost nothing", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  farm.Idle("w1");
  v1::SynchronizeRequest sick = farm.Request("w1");
  sick.mutable_worker()->set_quarantine_reason("canary");
  farm.Send(sick);

  CHECK(farm.Idle("w2")->value().lease().attempt() == 0);
}

TEST_CASE("Work that a worker gives back as it leaves is another's at once", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const std::string lease = farm.Idle("w1")->lease();
  farm.Executing("w1", lease);
  const auto other = farm.Idle("w2");
  REQUIRE(other->is_held());

  const auto farewell = Leave(farm, "w1");

  CHECK(farewell->value().has_idle());
  CHECK_FALSE(other->lease().empty());
  CHECK(other->value().lease().attempt() == 0);
}

TEST_CASE("Work that is given back time and again is blamed for nothing", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  for (int i = 0; i < 3 * LeaseManager::Options().max_grants; ++i) {
    const std::string worker = "w" + std::to_string(i % 3);
    const std::string lease = farm.Idle(worker, worker + std::to_string(i))->lease();
    REQUIRE_FALSE(lease.empty());
    v1::SynchronizeRequest executing = farm.Request(worker, worker + std::to_string(i));
    executing.mutable_executing()->set_lease_id(lease);
    farm.Send(executing);
    farm.clock.Advance(absl::Seconds(5));
    Leave(farm, worker, worker + std::to_string(i));
    farm.leases->Tick();
  }
  CHECK(farm.results.empty());

  const auto last = farm.Idle("w");
  CHECK(last->value().lease().attempt() == 0);
  farm.Submit("g");
  // Nor is it suspect, and kept alone.
  CHECK(farm.Prefetching("w", last->lease())->value().prefetches_size() == 1);
  farm.Completed("w", last->lease());
  CHECK(farm.results["f"].at(0).evaluation().has_measurement());
}

TEST_CASE("A worker may say more than once that it leaves", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  farm.Executing("w1", farm.Idle("w1")->lease());
  Leave(farm, "w1");

  CHECK(Leave(farm, "w1")->value().has_idle());

  farm.LoseSilentWorkers();
  CHECK(farm.Idle("w2")->value().lease().attempt() == 0);
}

TEST_CASE("What was given back is no loss after a restart either", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  farm.Executing("w1", farm.Idle("w1")->lease());
  Leave(farm, "w1");

  farm.Restart();
  farm.Submit("f");

  CHECK(farm.Idle("w2")->value().lease().attempt() == 0);
}

TEST_CASE("A worker that leaves is not given the lease of which it never heard", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  // The answer is lost.
  REQUIRE_FALSE(farm.Idle("w1")->lease().empty());

  CHECK(Leave(farm, "w1")->value().has_idle());

  CHECK_FALSE(farm.Idle("w2")->lease().empty());
}

TEST_CASE("Work is granted a bounded number of times over any restarts", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  int grants = 0;
  for (; grants < 100 && farm.results["f"].empty(); ++grants) {
    farm.Idle("w");
    farm.LoseSilentWorkers();
    if (grants % 2 == 0 || !farm.results["f"].empty()) continue;
    farm.Restart();
    farm.Submit("f");
  }

  REQUIRE(farm.results["f"].size() == 1);
  CHECK(IsCrash(farm.results["f"][0]));
  CHECK(grants == LeaseManager::Options().max_grants);
}

TEST_CASE("Work that no worker can do says why after two minutes", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const absl::Time begin = farm.clock.Now();
  int tries = 0;
  while (farm.results["f"].empty() && tries < 100) tries += FailWhatComes(farm, "w") ? 1 : 0;

  REQUIRE(farm.results["f"].size() == 1);
  CHECK(farm.results["f"][0].evaluation().failure().message() ==
        "workers could not do it, 10 times: no PyTorch");
  CHECK(tries == 10);
  CHECK(farm.waits["f"] ==
        std::vector<std::string>{
            "workers could not do it, 3 times, and are asked again: no PyTorch"});
  CHECK(farm.clock.Now() - begin >= absl::Minutes(2));
  CHECK(farm.clock.Now() - begin < absl::Minutes(3));
}

TEST_CASE("What keeps a worker from its work for a minute ends no work", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  const absl::Time begin = farm.clock.Now();
  while (farm.clock.Now() - begin < absl::Minutes(1)) FailWhatComes(farm, "w");
  farm.clock.Advance(absl::Minutes(1));

  farm.Completed("w", farm.Idle("w")->lease());

  REQUIRE(farm.results["f"].size() == 1);
  CHECK(farm.results["f"][0].evaluation().has_measurement());
}

TEST_CASE("Work that three workers could not do rests before it goes to a fourth",
          "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  for (const char* worker : {"w1", "w2", "w3"}) {
    farm.Completed(worker, farm.Idle(worker)->lease(), CannotWork());
  }
  const auto same = farm.Idle("w1");
  const auto other = farm.Idle("w4");
  CHECK(other->is_held());

  farm.clock.Advance(4 * LeaseManager::Options().min_rest);
  farm.leases->Tick();

  CHECK_FALSE(other->lease().empty());
  CHECK(same->is_held());
}

TEST_CASE("Work that rests does so no longer when the clock is set back", "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  farm.Completed("w", farm.Idle("w")->lease(), CannotWork());
  const auto held = farm.Idle("w");

  farm.clock.Advance(-absl::Hours(1));
  farm.leases->Tick();

  CHECK_FALSE(held->lease().empty());
}

TEST_CASE("A worker that is quarantined for what it could not do counts against no work",
          "[coordinator]") {
  Farm farm;
  farm.Submit("f");
  for (int i = 0; i < 5; ++i) {
    v1::SynchronizeRequest sick = farm.Request("w");
    sick.mutable_completed()->set_lease_id(farm.Idle("w")->lease());
    REQUIRE_FALSE(sick.completed().lease_id().empty());
    *sick.mutable_completed()->mutable_result() = CannotWork();
    sick.mutable_worker()->set_quarantine_reason("no room in the scratch folder");
    CHECK_FALSE(farm.Send(sick)->value().has_lease());
    farm.clock.Advance(absl::Minutes(5));
    farm.leases->Tick();
  }

  farm.Completed("w", farm.Idle("w")->lease());

  REQUIRE(farm.results["f"].size() == 1);
  CHECK(farm.results["f"][0].evaluation().has_measurement());
}

TEST_CASE("No work is blamed for workers that are killed every few seconds", "[coordinator]") {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    INFO("seed " << seed);
    KilledFarm farm({.seed = seed});

    farm.Run();

    CHECK(farm.kills() > 100);
    CHECK(farm.Condemned(/*is_killer=*/false) == 0);
  }
}

TEST_CASE("Work that kills its workers is found out among workers that are killed anyhow",
          "[coordinator]") {
  for (const double life : {4.0, 30.0, 3600.0}) {
    INFO("mean life " << life);
    KilledFarm farm({.seed = 7, .life_seconds = life, .jobs = 60, .killers = 30});

    farm.Run();

    REQUIRE(farm.Killers() > 5);
    CHECK(farm.Condemned(/*is_killer=*/true) == farm.Killers());
    CHECK(farm.Condemned(/*is_killer=*/false) == 0);
    CHECK(farm.most_runs_of_a_killer() <= LeaseManager::Options().max_grants);
  }
}

}  // namespace mtmc::coordinator

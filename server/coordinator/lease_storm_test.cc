// SPDX-License-Identifier: Apache-2.0
//
// LeaseManager under all that may happen to it, at random.
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/coordinator/lease_farm.h"

namespace mtmc::coordinator {
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
    std::vector<std::string> ahead;
  };

  bool IsDone() const { return static_cast<int>(farm_.results.size()) == num_submitted_; }

  // Each third of all work asks for another level of isolation.
  void Submit(const std::string& key) {
    const auto least = static_cast<v1::Isolation>(1 + std::stoi(key.substr(1)) % 3);
    farm_.SubmitIsolated(key, least, "job" + std::to_string(random_() % 3));
  }

  // Of the workers each has another level; only w0 may do everything.
  static v1::Isolation LevelOf(const std::string& worker) {
    return static_cast<v1::Isolation>(v1::ISOLATION_CONFINED - std::stoi(worker.substr(1)));
  }

  // The one that may do everything holds two.
  static int MostAheadOf(const std::string& worker) { return worker.ends_with("w0") ? 2 : 1; }

  static bool IsAllowed(const v1::Lease& lease, const std::string& worker) {
    return lease.evaluation().options().min_isolation() <= LevelOf(worker);
  }

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
    request.mutable_worker()->set_isolation_level(LevelOf(worker));
    request.set_most_prefetched(MostAheadOf(worker));
    request.mutable_prefetched_lease_ids()->Assign(held.ahead.begin(), held.ahead.end());
    if (!held.lease.empty() && is_done) {
      request.mutable_completed()->set_lease_id(held.lease);
      *request.mutable_completed()->mutable_result() = Measured();
    } else if (!held.lease.empty()) {
      request.mutable_executing()->set_lease_id(held.lease);
    }
    const auto call = farm_.Send(request);
    // A held call is given up; what is granted through it later is lost.
    if (call->is_held()) {
      farm_.leases->Disconnect("workers/" + worker, request.instance_id(), "");
    }
    if (call->is_held() || random_() % 5 == 0 || !call->response->ok()) return;
    CHECK(IsAllowed(call->value().lease(), worker));
    held.lease = call->lease();
    held.ahead.clear();
    for (const v1::Lease& lease : call->value().prefetches()) {
      CHECK(IsAllowed(lease, worker));
      held.ahead.push_back(lease.id());
    }
  }

  void CheckOneLeaseEach() const {
    std::set<std::string> works;
    std::map<std::string, int> ahead;
    const auto fleet = farm_.store.ReadFleet();
    for (const store::LeaseRecord& lease : fleet->leases) {
      if (lease.is_lost) continue;
      CHECK(works.insert(lease.work).second);
      if (lease.is_ahead) CHECK(++ahead[lease.worker] <= MostAheadOf(lease.worker));
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

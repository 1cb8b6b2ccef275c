// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/work_queue.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace mtmc::coordinator {
namespace {

fleet::WorkerDemand DemandFor(const std::string& product) {
  fleet::WorkerDemand demand;
  demand.selector.set_product(product);
  return demand;
}

std::string JobName(const std::string& project, int job) {
  return "projects/" + project + "/jobs/j" + std::to_string(job);
}

bool Fits(const Task& /*task*/) { return true; }

WorkQueue::MayServe Only(const std::string& product) {
  return [product](const Shelf& shelf) { return shelf.demand.selector.product() == product; };
}

// A queue beside a plain list of what is in it, which is looked through for everything.
class Twin {
 public:
  explicit Twin(uint32_t seed) : random_(seed) {}

  void Step() {
    switch (random_() % 8) {
      case 0:
      case 1:
      case 2:
        Add();
        break;
      case 3:
        Requeue();
        break;
      case 4:
        Leave();
        break;
      case 5:
        GiveUp();
        break;
      default:
        Grant();
    }
    CHECK(queue_.HasQueued() == std::any_of(entries_.begin(), entries_.end(), IsQueued));
  }

 private:
  struct Entry {
    std::string job;
    std::multiset<std::string> products;
    std::map<std::string, std::string> product_of_job;
    uint64_t order = 0;
    bool is_leased = false;
    bool is_given_up = false;
  };

  static bool IsQueued(const std::pair<const std::string, Entry>& entry) {
    return !entry.second.is_leased && !entry.second.is_given_up;
  }

  std::string AnyProduct() { return std::string(1, static_cast<char>('x' + random_() % 3)); }

  void Add() {
    const bool joins = !entries_.empty() && random_() % 3 == 0;
    const std::string key = joins ? AnyKey() : "k" + std::to_string(num_added_++);
    const std::string job = JobName(std::string(1, static_cast<char>('a' + random_() % 3)),
                                    static_cast<int>(random_() % 4));
    if (entries_.contains(key) && entries_[key].product_of_job.contains(job)) return;
    const std::string product = AnyProduct();
    search::Work work{.key = key};
    work.lease.set_job(job);
    work.demand = DemandFor(product);
    queue_.Add(work, {.job = job, .demand = work.demand}, absl::UnixEpoch());
    Entry& entry = entries_[key];
    if (entry.job.empty()) {
      entry.job = job;
      entry.order = ++clock_;
    }
    entry.products.insert(product);
    entry.product_of_job[job] = product;
  }

  void Grant() {
    const std::string product = AnyProduct();
    Task* task = queue_.Next(Only(product), Fits);
    const auto expected = Expected(product);
    REQUIRE((task != nullptr) == expected.has_value());
    if (task == nullptr) return;
    CHECK(task->work.key == *expected);
    queue_.SetLease(*task, "lease-" + task->work.key);
    queue_.MarkServed(task->work.lease.job());
    task->charged = queue_.shares().Charge(task->project);
    entries_[*expected].is_leased = true;
    served_[entries_[*expected].job] = ++clock_;
    if (random_() % 2 == 0) Finish(*expected);
  }

  void Finish(const std::string& key) {
    Task* task = queue_.Find(key);
    queue_.shares().Settle(task->project, task->charged, absl::Seconds(random_() % 5));
    queue_.Erase(key);
    entries_.erase(key);
  }

  void Requeue() {
    const std::string key = AnyKey();
    if (key.empty() || !entries_[key].is_leased) return;
    queue_.Requeue(*queue_.Find(key), "another lease", absl::UnixEpoch());
    CHECK_FALSE(queue_.Find(key)->lease.empty());
    queue_.Requeue(*queue_.Find(key), "lease-" + key, absl::UnixEpoch());
    entries_[key].is_leased = false;
  }

  // A waiter, or all of them.
  void Leave() {
    const std::string key = AnyKey();
    if (key.empty()) return;
    Entry& entry = entries_[key];
    const auto [job, product] = *entry.product_of_job.begin();
    queue_.RemoveWaiter(*queue_.Find(key), job);
    entry.products.erase(entry.products.find(product));
    entry.product_of_job.erase(job);
    if (!entry.products.empty()) return;
    queue_.Erase(key);
    entries_.erase(key);
  }

  void GiveUp() {
    const std::string key = AnyKey();
    if (key.empty() || random_() % 4 != 0) return;
    queue_.GiveUp(*queue_.Find(key));
    entries_[key].is_given_up = true;
    std::vector<std::string> hopeless;
    for (const auto& [name, entry] : entries_) {
      if (entry.is_given_up && !entry.is_leased) hopeless.push_back(name);
    }
    CHECK(queue_.Hopeless() == hopeless);
  }

  std::string AnyKey() {
    if (entries_.empty()) return "";
    auto entry = entries_.begin();
    std::advance(entry, random_() % entries_.size());
    return entry->first;
  }

  // By looking at everything.
  std::optional<std::string> Expected(const std::string& product) {
    std::optional<std::string> best;
    std::tuple<absl::Duration, uint64_t, uint64_t> best_rank;
    for (const auto& [key, entry] : entries_) {
      if (entry.is_leased || entry.is_given_up || !entry.products.contains(product)) continue;
      const std::tuple<absl::Duration, uint64_t, uint64_t> rank = {
          queue_.shares().ClockOf(ProjectShares::ProjectOf(entry.job)), served_[entry.job],
          entry.order};
      if (best && rank >= best_rank) continue;
      best = key;
      best_rank = rank;
    }
    return best;
  }

  std::mt19937 random_;
  WorkQueue queue_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, uint64_t> served_;
  uint64_t clock_ = 0;
  int num_added_ = 0;
};

}  // namespace

TEST_CASE("WorkQueue gives what looking through all of it would find", "[queue]") {
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Twin twin(seed);
    for (int i = 0; i < 400; ++i) twin.Step();
  }
}

TEST_CASE("Every task is granted while others come without end", "[queue]") {
  std::mt19937 random(3);
  WorkQueue queue;
  int num_added = 0;
  const auto add = [&](const std::string& project, int job) {
    search::Work work{.key = "k" + std::to_string(num_added++)};
    work.lease.set_job(JobName(project, job));
    queue.Add(work, {.job = work.lease.job(), .demand = DemandFor("x")}, absl::UnixEpoch());
    return work.key;
  };
  const std::string patient = add("small", 0);
  for (int i = 0; i < 100; ++i) add("large", i);
  int grants = 0;
  for (; queue.Find(patient) != nullptr && grants < 1000; ++grants) {
    Task* task = queue.Next(Only("x"), Fits);
    REQUIRE(task != nullptr);
    const std::string key = task->work.key;
    queue.SetLease(*task, "l");
    queue.MarkServed(task->work.lease.job());
    const absl::Duration charged = queue.shares().Charge(task->project);
    queue.shares().Settle(task->project, charged, absl::Milliseconds(random() % 100));
    queue.Erase(key);
    for (int i = 0; i < 3; ++i) add("large", static_cast<int>(random() % 100));
  }
  CHECK(grants < 10);
}

TEST_CASE("Work that two jobs wait for lies where either of them looks", "[queue]") {
  WorkQueue queue;
  for (const char* product : {"x", "y"}) {
    search::Work work{.key = "k"};
    work.lease.set_job(JobName(product, 0));
    queue.Add(work, {.job = work.lease.job(), .demand = DemandFor(product)}, absl::UnixEpoch());
  }
  CHECK(queue.Next(Only("x"), Fits) != nullptr);
  CHECK(queue.Next(Only("y"), Fits) != nullptr);
  queue.RemoveWaiter(*queue.Find("k"), JobName("x", 0));
  CHECK(queue.Next(Only("x"), Fits) == nullptr);
  CHECK(queue.Next(Only("y"), Fits) != nullptr);
}

}  // namespace mtmc::coordinator

// SPDX-License-Identifier: Apache-2.0
//
// The contract of OwnerStore, and how a JobStore keeps out whoever is not the owner any
// more, on every implementation.
#include "server/store/owner_store.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/store/fenced_job_store.h"
#include "server/store/store_makers.h"
#include "server/store/test_records.h"

namespace mtmc::store {
namespace {

using testing::IsOk;
using testing::StatusIs;

v1::JobEvent NoticeOf(int64_t epoch, int number) {
  return Notice(std::to_string(epoch) + " " + std::to_string(number));
}

int64_t EpochOf(const v1::JobEvent& event) { return std::stoll(event.notice()); }

// Records the next owner.
absl::Status TakeOver(OwnerStore& store, const std::string& name) {
  const auto seen = store.ReadOwner();
  if (!seen.ok()) return seen.status();
  return store.ReplaceOwner(*seen, {.epoch = seen->epoch + 1, .name = name});
}

}  // namespace

TEMPLATE_TEST_CASE("OwnerStore records an owner only after the one that was seen", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  const OwnerRecord nobody = *store->ReadOwner();
  const OwnerRecord first{.epoch = 1, .beat = 3, .name = "a", .address = "h:1"};

  REQUIRE_THAT(store->ReplaceOwner(nobody, first), IsOk());
  const absl::Status late = store->ReplaceOwner(nobody, {.epoch = 1, .name = "b"});

  CHECK(nobody == OwnerRecord{});
  CHECK_THAT(late, StatusIs(absl::StatusCode::kAborted));
  CHECK(rpc::ErrorReason(late) == "OWNER_CHANGED");
  CHECK(*store->ReadOwner() == first);
}

TEMPLATE_TEST_CASE("JobStore writes nothing of an epoch that is over", "[store]", SqliteMaker,
                   FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(TakeOver(*store, "a"), IsOk());
  FencedJobStore first(*store, 1);
  REQUIRE_THAT(first.Commit({.job_name = kJob, .new_job = MakeJob(kJob)}), IsOk());
  REQUIRE_THAT(TakeOver(*store, "b"), IsOk());

  const absl::Status late = first.Commit(
      {.job_name = kJob, .events = {NoticeOf(1, 1)}, .leases = {{.id = "l", .work = "w"}}});

  CHECK_THAT(late, StatusIs(absl::StatusCode::kUnavailable));
  CHECK(rpc::ErrorReason(late) == "NOT_OWNER");
  CHECK(store->ReadEvents(kJob, 0, 10)->empty());
  CHECK(store->ReadFleet()->leases.empty());
  CHECK_THAT(FencedJobStore(*store, 2).Commit({.job_name = kJob, .events = {NoticeOf(2, 1)}}),
             IsOk());
}

// Two owners that do not know of each other take turns at random; a model says what must
// come of each step.
TEMPLATE_TEST_CASE("JobStore keeps out the late owner in any order of steps", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit({.job_name = kJob, .new_job = MakeJob(kJob)}), IsOk());
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::vector<std::string> names = {"a", "b"};
  // What each of them believes, and what is so.
  std::vector<OwnerRecord> believed(2);
  OwnerRecord owner;
  std::vector<std::string> expected;

  for (int step = 0; step < 200; ++step) {
    const size_t who = random() % 2;
    switch (random() % 4) {
      case 0:  // looks
        believed[who] = *store->ReadOwner();
        CHECK(believed[who] == owner);
        break;
      case 1: {  // takes over from whom it saw
        const OwnerRecord next{.epoch = believed[who].epoch + 1, .name = names[who]};
        const bool is_current = believed[who] == owner;
        CHECK(store->ReplaceOwner(believed[who], next).ok() == is_current);
        if (is_current) owner = believed[who] = next;
        break;
      }
      default: {  // writes in the epoch it believes in
        if (believed[who].epoch == 0) break;
        FencedJobStore fenced(*store, believed[who].epoch);
        const v1::JobEvent event = NoticeOf(believed[who].epoch, step);
        const bool is_current = believed[who].epoch == owner.epoch;
        CHECK(fenced.Commit({.job_name = kJob, .events = {event}}).ok() == is_current);
        if (is_current) expected.push_back(event.notice());
      }
    }
  }

  const auto events = *store->ReadEvents(kJob, 0, 1000);
  std::vector<std::string> written;
  for (const v1::JobEvent& event : events) written.push_back(event.notice());
  CHECK(written == expected);
}

// The same at once, so that a take-over falls into the middle of a commit.
TEMPLATE_TEST_CASE("JobStore has no event of an epoch after one of a later epoch", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  constexpr int kTakeOvers = 40;
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit({.job_name = kJob, .new_job = MakeJob(kJob)}), IsOk());
  REQUIRE_THAT(TakeOver(*store, "0"), IsOk());
  std::atomic<int64_t> newest = 1;
  std::atomic<int> written = 0;
  std::atomic<int> refused = 0;

  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < 2; ++i) {
      writers.emplace_back([&](const std::stop_token& stop) {
        int64_t epoch = 1;
        for (int number = 0; !stop.stop_requested(); ++number) {
          FencedJobStore fenced(*store, epoch);
          if (fenced.Commit({.job_name = kJob, .events = {NoticeOf(epoch, number)}}).ok()) {
            ++written;
          } else {
            ++refused;
            epoch = newest;
          }
        }
      });
    }
    for (int i = 0; i < kTakeOvers;) {
      const int before = written;
      while (written == before) std::this_thread::yield();
      if (TakeOver(*store, std::to_string(i)).ok()) newest = 1 + ++i;
    }
  }

  const auto events = *store->ReadEvents(kJob, 0, 1'000'000);
  CHECK(events.size() == static_cast<size_t>(written.load()));
  CHECK(refused > 0);
  int64_t last = 0;
  for (const v1::JobEvent& event : events) {
    CHECK(EpochOf(event) >= last);
    last = EpochOf(event);
  }
}

}  // namespace mtmc::store

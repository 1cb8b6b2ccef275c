// SPDX-License-Identifier: Apache-2.0
//
// Quotas while commits are grouped: what is refused is refused at once, though it is written
// later.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/store/quota.h"
#include "server/store/quota_records.h"
#include "server/store/store_makers.h"
#include "server/store/test_records.h"

namespace mtmc::store {
namespace {

using testing::IsOk;

void Flush(JobStore& store) {
  absl::Notification is_written;
  store.AfterFlush([&is_written] { is_written.Notify(); });
  is_written.WaitForNotification();
}

std::string Job(int64_t number) { return absl::StrCat("projects/p/jobs/j", number); }

}  // namespace

TEMPLATE_TEST_CASE("A quota counts what was committed and is not written yet", "[store]",
                   SqliteMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  auto witness = maker.Reopen(nullptr);
  store->BeginGroups();
  REQUIRE_THAT(store->Commit(Limit(QuotaResource::kOpenJobs, 3)), IsOk());

  // Faster than any disk.
  int accepted = 0;
  for (int i = 0; i < 50; ++i) {
    const absl::Status status = store->Commit(Open(Job(i)));
    if (status.ok()) ++accepted;
    if (!status.ok()) CHECK(rpc::ErrorReason(status) == "QUOTA_EXCEEDED");
  }

  CHECK(accepted == 3);
  CHECK(store->FindQuota(Job(0), QuotaResource::kOpenJobs)->reserved == 3);
  Flush(*store);
  CHECK(witness->ListJobs({.project = kProject})->jobs.size() == 3);
  CHECK(*witness->FindQuota(Job(0), QuotaResource::kOpenJobs) ==
        QuotaAccount{.allowed = 3, .reserved = 3, .own = 1});
  // A job that is deleted gives back what it held, also to the one that comes next.
  REQUIRE_THAT(store->Commit({.job_name = Job(1), .is_job_deleted = true}), IsOk());
  REQUIRE_THAT(store->Commit(Open(Job(60))), IsOk());
  CHECK(rpc::ErrorReason(store->Commit(Open(Job(61)))) == "QUOTA_EXCEEDED");
  Flush(*store);
  CHECK_THAT(witness->LookupJob(Job(60)).status(), IsOk());
  CHECK(absl::IsNotFound(store->Commit(Change("projects/p/jobs/none", 1))));
}

TEMPLATE_TEST_CASE("What is counted at once is what is written", "[store]", SqliteMaker,
                   PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  std::minstd_rand random(2);
  const auto draw = [&](int64_t most) { return static_cast<int64_t>(random()) % (most + 1); };
  auto store = maker.Open();
  auto witness = maker.Reopen(nullptr);
  store->BeginGroups();
  REQUIRE_THAT(store->Commit(Limit(kTime, 1000)), IsOk());
  std::map<std::string, int64_t> held;
  int64_t used = 0;
  for (int i = 0; i < 8; ++i) {
    REQUIRE_THAT(store->Commit(Open(Job(i))), IsOk());
    held[Job(i)] = 0;
  }
  int refused = 0;
  for (int step = 0; step < 600; ++step) {
    auto entry = std::next(held.begin(), draw(7));
    const int64_t wanted = draw(3) == 0 ? 0 : draw(400);
    const int64_t spent = std::min(draw(2) == 0 ? draw(20) : 0, entry->second);
    int64_t reserved = 0;
    for (const auto& [job, amount] : held) reserved += amount;
    const int64_t more = wanted + spent - entry->second;
    const bool has_room = more <= 0 || wanted == 0 || used + reserved + more <= 1000;

    REQUIRE(store->Commit(Change(entry->first, wanted, spent)).ok() == has_room);

    if (has_room) {
      entry->second = wanted;
      used += spent;
      reserved += more - spent;
    } else {
      ++refused;
    }
    const QuotaAccount expected{.allowed = 1000, .used = used, .reserved = reserved};
    REQUIRE(*store->FindQuota("projects/p/jobs/x", kTime) == expected);
    if (used > 900) {
      REQUIRE_THAT(store->Commit({.limits = {{.project = kProject,
                                              .resource = kTime,
                                              .is_set = false,
                                              .resets_use = true}}}),
                   IsOk());
      used = 0;
    }
    if (draw(40) == 0) {
      Flush(*store);
      const auto written = *witness->FindQuota("projects/p/jobs/x", kTime);
      REQUIRE(written == QuotaAccount{.allowed = 1000, .used = used, .reserved = reserved});
      REQUIRE(written.used + written.reserved <= 1000);
    }
    if (draw(100) == 0) {
      store->EndGroups();
      store->BeginGroups();
    }
  }
  CHECK(refused > 10);
}

TEMPLATE_TEST_CASE("What the database has no room for is not written at all", "[store]",
                   SqliteMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  auto other = maker.Reopen(nullptr);
  store->BeginGroups();
  REQUIRE_THAT(store->Commit(Open(Job(0))), IsOk());
  Flush(*store);
  // Against the rules: nobody but the owner of the jobs writes.
  REQUIRE_THAT(other->Commit(Limit(QuotaResource::kOpenJobs, 1)), IsOk());

  store->Commit(Open(Job(1))).IgnoreError();
  REQUIRE_THAT(store->Commit(Change(Job(0), std::nullopt, 5)), IsOk());
  Flush(*store);

  CHECK(absl::IsNotFound(other->LookupJob(Job(1)).status()));
  CHECK(*other->FindQuota(Job(0), QuotaResource::kOpenJobs) ==
        QuotaAccount{.allowed = 1, .reserved = 1, .own = 1});
  CHECK(other->FindQuota(Job(0), kTime)->used == 5);
}

TEMPLATE_TEST_CASE("What is refused between others of its group takes nothing of theirs along",
                   "[store]", SqliteMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  auto other = maker.Reopen(nullptr);
  store->BeginGroups();
  REQUIRE_THAT(store->Commit(Open(Job(0))), IsOk());
  Flush(*store);
  // Against the rules, as above.
  REQUIRE_THAT(other->Commit(Limit(QuotaResource::kOpenJobs, 1)), IsOk());
  std::vector<std::string> told;

  for (int i = 1; i <= 20; ++i) {
    Write refused = Open(Job(i));
    refused.events = {Notice("refused")};
    REQUIRE_THAT(store->Commit(refused), IsOk());
    const std::string text = absl::StrCat(i);
    REQUIRE_THAT(store->Commit({.job_name = Job(0), .events = {Notice(text)}}), IsOk());
    told.push_back(text);
  }
  Flush(*store);

  std::vector<std::string> written;
  const auto events = *other->ReadEvents(Job(0), 0, 100);
  for (const v1::JobEvent& event : events) {
    written.push_back(event.notice());
    CHECK(event.sequence() == static_cast<int64_t>(written.size()));
  }
  CHECK(written == told);
  CHECK(other->ListJobs({})->jobs.size() == 1);
  CHECK(other->ReadEvents(Job(7), 0, 100)->empty());
  store->EndGroups();
}

TEMPLATE_TEST_CASE("One that owns the jobs no more reserves nothing", "[store]", SqliteMaker,
                   PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto first = maker.Open();
  auto second = maker.Reopen(nullptr);
  REQUIRE_THAT(first->ReplaceOwner(*first->ReadOwner(), {.epoch = 1, .name = "first"}), IsOk());
  first->BeginGroups();
  Write limit = Limit(kTime, 100);
  limit.epoch = 1;
  Write open = Open(Job(0));
  open.epoch = 1;
  REQUIRE_THAT(first->Commit(limit), IsOk());
  REQUIRE_THAT(first->Commit(open), IsOk());
  Flush(*first);
  REQUIRE_THAT(second->ReplaceOwner(*second->ReadOwner(), {.epoch = 2, .name = "second"}), IsOk());
  second->BeginGroups();

  // Nobody is told that this is there before it is written, which it never is.
  Write late = Change(Job(0), 80);
  late.epoch = 1;
  first->Commit(late).IgnoreError();
  Write mine = Change(Job(0), 90);
  mine.epoch = 2;
  CHECK_THAT(second->Commit(mine), IsOk());
  Flush(*second);
  // By now the first has tried.
  first->EndGroups();

  second->EndGroups();
  CHECK(*second->FindQuota(Job(0), kTime) ==
        QuotaAccount{.allowed = 100, .reserved = 90, .own = 90});
}

}  // namespace mtmc::store

// SPDX-License-Identifier: Apache-2.0
#include "server/store/quota.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/store/quota_records.h"
#include "server/store/store_makers.h"

namespace mtmc::store {
namespace {

using testing::IsOk;
using testing::StatusIs;

QuotaAccount Account(JobStore& store, QuotaResource resource) {
  for (const ProjectQuota& quota : *store.ListQuotas(kProject)) {
    const auto found = quota.accounts.find(resource);
    if (found != quota.accounts.end()) return found->second;
  }
  return {};
}

TEMPLATE_TEST_CASE("JobStore takes no more open jobs than the quota allows", "[store]", SqliteMaker,
                   FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(Limit(QuotaResource::kOpenJobs, 1)), IsOk());
  REQUIRE_THAT(store->Commit(Open(kJob)), IsOk());

  const absl::Status refused = store->Commit(Open("projects/p/jobs/b"));

  CHECK_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, "1 there, 1 allowed"));
  CHECK(rpc::ErrorReason(refused) == "QUOTA_EXCEEDED");
  CHECK(rpc::ErrorMetadata(refused)["resource"] == "open_jobs");
  CHECK(rpc::ErrorMetadata(refused)["used"] == "1");
  CHECK(rpc::ErrorMetadata(refused)["allowed"] == "1");
  // Nothing of it is written, and other projects are not concerned.
  CHECK(absl::IsNotFound(store->LookupJob("projects/p/jobs/b").status()));
  CHECK_THAT(store->Commit(Open("projects/q/jobs/b")), IsOk());
  REQUIRE_THAT(store->Commit({.job_name = kJob,
                              .quota = {{.resource = QuotaResource::kOpenJobs, .reserved = 0}}}),
               IsOk());
  CHECK_THAT(store->Commit(Open("projects/p/jobs/b")), IsOk());
}

TEMPLATE_TEST_CASE("JobStore counts what was reserved and used, and nothing twice", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(Open(kJob)), IsOk());
  REQUIRE_THAT(store->Commit(Limit(kTime, 100)), IsOk());

  // To reserve the same again, as after a crash, reserves it once.
  REQUIRE_THAT(store->Commit(Change(kJob, 60)), IsOk());
  REQUIRE_THAT(store->Commit(Change(kJob, 60)), IsOk());
  CHECK(*store->FindQuota(kJob, kTime) == QuotaAccount{.allowed = 100, .reserved = 60, .own = 60});
  CHECK(rpc::ErrorReason(store->Commit(Change(kJob, 101))) == "QUOTA_EXCEEDED");
  // What is used comes from what is held; the rest is given back.
  REQUIRE_THAT(store->Commit(Change(kJob, std::nullopt, 10)), IsOk());
  CHECK(*store->FindQuota(kJob, kTime) ==
        QuotaAccount{.allowed = 100, .used = 10, .reserved = 50, .own = 50});
  REQUIRE_THAT(store->Commit(Change(kJob, 0, 20)), IsOk());
  CHECK(*store->FindQuota(kJob, kTime) == QuotaAccount{.allowed = 100, .used = 30});
  // More than it held is not counted.
  REQUIRE_THAT(store->Commit(Change(kJob, 70)), IsOk());
  REQUIRE_THAT(store->Commit(Change(kJob, 0, 1000)), IsOk());

  CHECK(*store->FindQuota(kJob, kTime) == QuotaAccount{.allowed = 100, .used = 100});
}

TEMPLATE_TEST_CASE("JobStore counts all that is used without a limit", "[store]", SqliteMaker,
                   FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(Open(kJob)), IsOk());
  REQUIRE_THAT(store->Commit(Change(kJob, std::nullopt, 40)), IsOk());
  REQUIRE_THAT(store->Commit(Limit(kTime, 10)), IsOk());

  // Above a limit that came later nothing is reserved, and what ends is counted still.
  CHECK(rpc::ErrorReason(store->Commit(Change(kJob, 1))) == "QUOTA_EXCEEDED");
  REQUIRE_THAT(store->Commit(Change(kJob, 0, 2)), IsOk());
  CHECK(Account(*store, kTime) == QuotaAccount{.allowed = 10, .used = 42});
  REQUIRE_THAT(store->Commit({.limits = {{.project = kProject,
                                          .resource = kTime,
                                          .is_set = false,
                                          .resets_use = true}}}),
               IsOk());
  CHECK(Account(*store, kTime) == QuotaAccount{.allowed = 10});
  REQUIRE_THAT(store->Commit(Limit(kTime, std::nullopt)), IsOk());

  CHECK_THAT(store->Commit(Change(kJob, 1000)), IsOk());
  CHECK(Account(*store, kTime) == QuotaAccount{.reserved = 1000});
}

TEMPLATE_TEST_CASE("A deleted job holds nothing, and what it used stays counted", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(Open(kJob)), IsOk());
  REQUIRE_THAT(store->Commit(Change(kJob, 50, 20)), IsOk());

  REQUIRE_THAT(store->Commit({.job_name = kJob, .is_job_deleted = true}), IsOk());

  CHECK(Account(*store, kTime) == QuotaAccount{.used = 20});
  CHECK(Account(*store, QuotaResource::kOpenJobs) == QuotaAccount());
}

// Random jobs that reserve, use, give back and end, against a store that is opened again
// now and then, as after a crash.
TEMPLATE_TEST_CASE("No order of reservations exceeds a limit or is left behind", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  std::minstd_rand random(1);
  const auto draw = [&](int64_t most) { return static_cast<int64_t>(random()) % (most + 1); };
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(Limit(kTime, 1000)), IsOk());
  std::map<std::string, int64_t> held;
  int64_t used = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string job = absl::StrCat("projects/p/jobs/j", i);
    REQUIRE_THAT(store->Commit(Open(job)), IsOk());
    held[job] = 0;
  }
  for (int step = 0; step < 400; ++step) {
    auto entry = std::next(held.begin(), draw(7));
    const int64_t wanted = draw(3) == 0 ? 0 : draw(400);
    const int64_t spent = draw(2) == 0 ? draw(300) : 0;
    // Nobody uses what it does not hold while there is a limit.
    const int64_t counted = std::min(spent, entry->second);

    const absl::Status status = store->Commit(Change(entry->first, wanted, counted));

    const int64_t more = wanted + counted - entry->second;
    int64_t reserved = 0;
    for (const auto& [job, amount] : held) reserved += amount;
    const bool has_room = more <= 0 || wanted == 0 || used + reserved + more <= 1000;
    CHECK(status.ok() == has_room);
    if (status.ok()) {
      entry->second = wanted;
      used += counted;
      reserved += more - counted;
    }
    if (draw(20) == 0) store = maker.Reopen(std::move(store));
    const QuotaAccount account = *store->FindQuota("projects/p/jobs/x", kTime);
    REQUIRE(account.used + account.reserved <= 1000);
    REQUIRE(account == QuotaAccount{.allowed = 1000, .used = used, .reserved = reserved});
  }
  for (const auto& [job, amount] : held) {
    REQUIRE_THAT(store->Commit(Change(job, 0, amount)), IsOk());
    used += amount;
  }
  CHECK(*store->FindQuota("projects/p/jobs/x", kTime) ==
        QuotaAccount{.allowed = 1000, .used = used});
}

TEST_CASE("What an account says has its unit", "[store]") {
  CHECK(DescribeAccount(kTime, {.allowed = 7'200'000'000, .used = 90'000'000}) ==
        "1m30s used and 0 reserved, 2h allowed");
  CHECK(DescribeAccount(QuotaResource::kTokens, {.allowed = 10, .used = 4, .reserved = 5}) ==
        "4 used and 5 reserved, 10 allowed");
}

}  // namespace
}  // namespace mtmc::store

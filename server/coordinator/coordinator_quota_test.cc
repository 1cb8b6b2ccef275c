// SPDX-License-Identifier: Apache-2.0
//
// Jobs of a project with a quota.
#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/config/version.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "google/protobuf/util/time_util.h"
#include "server/coordinator/coordinator_fixture.h"

namespace mtmc::coordinator {
namespace {

using google::protobuf::util::TimeUtil;
using store::QuotaAccount;
using store::QuotaResource;
using testing::IsOk;

constexpr int64_t kSecond = 1'000'000;
constexpr auto kTime = QuotaResource::kDeviceTime;

void SetLimit(World& world, QuotaResource resource, std::optional<int64_t> allowed) {
  REQUIRE_THAT(
      world.memory.Commit(
          {.limits = {{.project = "projects/p", .resource = resource, .allowed = allowed}}}),
      IsOk());
}

QuotaAccount Account(World& world, QuotaResource resource) {
  const auto quotas = *world.memory.ListQuotas("projects/p");
  if (quotas.empty()) return {};
  const auto found = quotas[0].accounts.find(resource);
  return found == quotas[0].accounts.end() ? QuotaAccount() : found->second;
}

// Lets each evaluation take so long on its device.
void TakeTime(World& world, int64_t seconds) {
  world.worker.work = [seconds](const v1::Lease& lease) {
    v1::LeaseResult result = FakeWork(lease);
    if (result.has_evaluation()) {
      auto* span = result.mutable_evaluation()->add_spans();
      span->mutable_start_time()->set_seconds(100);
      span->mutable_end_time()->set_seconds(100 + seconds);
    }
    return result;
  };
}

v1::CreateJobRequest RequestFor(World& world, const std::string& id) {
  v1::CreateJobRequest request = world.Request("greedy");
  request.set_job_id(id);
  request.clear_request_id();
  request.mutable_job()->mutable_budget()->set_max_trials(30);
  return request;
}

std::string ReasonOf(const absl::Status& status) { return rpc::ErrorReason(status); }

TEST_CASE("A job beyond the quota of open jobs is refused until another one ends",
          "[coordinator]") {
  World world;
  SetLimit(world, QuotaResource::kOpenJobs, 1);
  world.Start();
  world.Create(world.Request());

  const absl::Status refused = world.coordinator->CreateJob(RequestFor(world, "b")).status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(ReasonOf(refused) == "QUOTA_EXCEEDED");
  CHECK(rpc::ErrorMetadata(refused)["resource"] == "open_jobs");
  // The same request is the same job.
  CHECK_THAT(world.coordinator->CreateJob(world.Request()).status(), IsOk());
  REQUIRE_THAT(world.coordinator->CancelJob(kJob).status(), IsOk());
  world.AwaitEnd();

  CHECK(Account(world, QuotaResource::kOpenJobs).reserved == 0);
  CHECK_THAT(world.coordinator->CreateJob(RequestFor(world, "b")).status(), IsOk());
}

TEST_CASE("A job ends with what it found when device time is used up", "[coordinator]") {
  World world;
  SetLimit(world, kTime, 25 * kSecond);
  world.quota_slice = absl::Seconds(10);
  TakeTime(world, 10);
  world.StartWithWorker();

  world.Create(RequestFor(world, "job"));
  const v1::Job job = world.AwaitEnd();

  CHECK(job.end_reason() == v1::Job::END_REASON_QUOTA);
  CHECK(job.state() == v1::Job::STATE_SUCCEEDED);
  CHECK(world.HasNotice("no room for more device time: 25s used and 0 reserved, 25s allowed"));
  CHECK(Account(world, kTime) == QuotaAccount{.allowed = 25 * kSecond, .used = 25 * kSecond});
  // The next one is not begun.
  const absl::Status refused = world.coordinator->CreateJob(RequestFor(world, "b")).status();
  CHECK(ReasonOf(refused) == "QUOTA_EXCEEDED");
  CHECK(rpc::ErrorMetadata(refused)["resource"] == "device_time");
}

TEST_CASE("A job that a quota leaves nothing to find has failed by it", "[coordinator]") {
  World world;
  world.StartWithWorker();
  SetLimit(world, kTime, kSecond / 2);
  world.quota_slice = absl::Seconds(10);

  world.Create(RequestFor(world, "job"));
  const v1::Job job = world.AwaitEnd();

  CHECK(job.end_reason() == v1::Job::END_REASON_QUOTA);
  CHECK(job.failure().reason() == "QUOTA_EXCEEDED");
}

TEST_CASE("A job waits for device time that another one has reserved", "[coordinator]") {
  World world;
  SetLimit(world, kTime, 10 * kSecond);
  const std::string other = "projects/p/jobs/other";
  v1::Job held;
  held.set_name(other);
  held.set_state(v1::Job::STATE_SUCCEEDED);
  REQUIRE_THAT(world.memory.Commit({.job_name = other,
                                    .new_job = held,
                                    .quota = {{.resource = kTime, .reserved = 10 * kSecond}}}),
               IsOk());
  TakeTime(world, 3);
  world.StartWithWorker();
  world.Create(RequestFor(world, "job"));

  while (!world.HasNotice("waits for its project's quota")) world.Turn();
  CHECK_FALSE(world.memory.LookupJob(kJob)->has_end_time());
  // What the other one does not use is free.
  REQUIRE_THAT(
      world.memory.Commit(
          {.job_name = other, .quota = {{.resource = kTime, .reserved = 0, .used = 4 * kSecond}}}),
      IsOk());
  const v1::Job job = world.AwaitEnd();

  CHECK(job.end_reason() == v1::Job::END_REASON_QUOTA);
  CHECK(job.state() == v1::Job::STATE_SUCCEEDED);
  CHECK(Account(world, kTime) == QuotaAccount{.allowed = 10 * kSecond, .used = 10 * kSecond});
}

TEST_CASE("A job that waits for its quota can be cancelled", "[coordinator]") {
  World world;
  SetLimit(world, kTime, 10 * kSecond);
  v1::Job held;
  held.set_name("projects/p/jobs/other");
  REQUIRE_THAT(world.memory.Commit({.job_name = held.name(),
                                    .new_job = held,
                                    .quota = {{.resource = kTime, .reserved = 10 * kSecond}}}),
               IsOk());
  world.StartWithWorker();
  world.Create(RequestFor(world, "job"));
  while (!world.HasNotice("waits for its project's quota")) world.Turn();

  REQUIRE_THAT(world.coordinator->CancelJob(kJob).status(), IsOk());

  CHECK(world.AwaitEnd().state() == v1::Job::STATE_CANCELLED);
}

TEST_CASE("An evaluation that outlasts the quota is called off", "[coordinator]") {
  World world;
  SetLimit(world, kTime, kSecond / 10);
  world.quota_slice = absl::Milliseconds(30);
  world.Start();
  v1::SynchronizeRequest request;
  request.set_instance_id("hand");
  v1::Worker& worker = *request.mutable_worker();
  worker.set_name("workers/hand");
  worker.set_version(std::string(config::Version()));
  worker.mutable_device()->set_product("cpu");
  worker.mutable_device()->add_dialects(v1::DIALECT_OPENCL);
  worker.set_isolation_level(v1::ISOLATION_RESTRICTED);
  const auto call = [&] {
    absl::Notification is_answered;
    v1::SynchronizeResponse response;
    world.coordinator->Synchronize(request, "", [&](auto answer) {
      if (answer.ok()) response = *answer;
      is_answered.Notify();
    });
    is_answered.WaitForNotification();
    return response.lease();
  };
  request.mutable_idle();
  call();
  world.Create(RequestFor(world, "job"));
  v1::Lease lease = call();
  while (!lease.has_inspection()) lease = call();
  request.mutable_completed()->set_lease_id(lease.id());
  *request.mutable_completed()->mutable_result() = FakeWork(lease);
  lease = call();
  request.mutable_idle();
  while (!lease.has_evaluation()) lease = call();

  // And it is never heard of again.
  const v1::Job job = world.AwaitEnd();

  CHECK(job.end_reason() == v1::Job::END_REASON_QUOTA);
  CHECK(job.failure().reason() == "QUOTA_EXCEEDED");
  CHECK(Account(world, kTime) == QuotaAccount{.allowed = kSecond / 10, .used = kSecond / 10});
  // However late the coordinator was: the jobs of a project add up to what it has used.
  CHECK(TimeUtil::DurationToMicroseconds(job.budget_use().device_time()) == kSecond / 10);
}

TEST_CASE("A language model is asked for no more tokens than the quota has left", "[coordinator]") {
  World world;
  SetLimit(world, QuotaResource::kTokens, 5000);
  world.coder.Bill(2000);
  world.StartWithWorker();
  v1::CreateJobRequest request = RequestFor(world, "job");
  request.mutable_job()->mutable_search()->set_coder("llm");

  world.Create(request);
  const v1::Job job = world.AwaitEnd();

  CHECK(job.end_reason() == v1::Job::END_REASON_QUOTA);
  CHECK(world.coder.token_limits() == std::vector<int64_t>{5000, 3000, 1000});
  CHECK(Account(world, QuotaResource::kTokens) == QuotaAccount{.allowed = 5000, .used = 5000});
  request.set_job_id("b");
  CHECK(ReasonOf(world.coordinator->CreateJob(request).status()) == "QUOTA_EXCEEDED");
  // The built-in coder costs nothing.
  CHECK_THAT(world.coordinator->CreateJob(RequestFor(world, "c")).status(), IsOk());
}

TEST_CASE("Use is counted, and nothing reserved, in a project without a limit", "[coordinator]") {
  World world;
  TakeTime(world, 10);
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  const int64_t used = TimeUtil::DurationToMicroseconds(job.budget_use().device_time());
  CHECK(used >= 10 * kSecond);
  CHECK(Account(world, kTime) == QuotaAccount{.used = used});
}

TEST_CASE("Metrics show what a project uses and may use, and no limit that is gone",
          "[coordinator]") {
  World world;
  world.StartWithWorker();
  const auto limit = [&](std::optional<int64_t> allowed) {
    return world.coordinator->SetQuotaLimits(
        {{.project = "projects/p", .resource = kTime, .allowed = allowed}});
  };
  const auto shows = [&](const std::string& text) {
    return world.registry.Render().find(text) != std::string::npos;
  };
  const std::string series = R"(mtmc_quota_device_seconds{kind="limit",project="p"} 90)";

  REQUIRE_THAT(limit(90 * kSecond), IsOk());
  while (!shows(series)) world.Turn();
  CHECK(shows(R"(mtmc_quota_device_seconds{kind="used",project="p"} 0)"));
  REQUIRE_THAT(limit(std::nullopt), IsOk());

  while (shows(series)) world.Turn();
}

TEST_CASE("A paused job holds nothing of its quota", "[coordinator]") {
  World world;
  SetLimit(world, kTime, 100 * kSecond);
  TakeTime(world, 1);
  world.StartWithWorker();
  world.Create(RequestFor(world, "job"));
  world.Await([](const v1::Job& job) { return job.budget_use().trials() >= 2; });

  REQUIRE_THAT(world.coordinator->PauseJob(kJob).status(), IsOk());

  while (Account(world, kTime).reserved > 0) world.Turn();
  REQUIRE_THAT(world.coordinator->ResumeJob(kJob).status(), IsOk());
  world.AwaitEnd();
  CHECK(Account(world, kTime).reserved == 0);
}

TEST_CASE("A job that is cancelled as soon as its coordinator is back is not counted again",
          "[coordinator]") {
  World world;
  TakeTime(world, 10);
  world.StartWithWorker();
  world.Create(RequestFor(world, "job"));
  world.Await([](const v1::Job& job) { return job.budget_use().trials() >= 2; });
  world.Stop();

  world.StartWithWorker();
  REQUIRE_THAT(world.coordinator->CancelJob(kJob).status(), IsOk());

  const v1::Job job = world.AwaitEnd();
  CHECK(Account(world, kTime).used ==
        TimeUtil::DurationToMicroseconds(job.budget_use().device_time()));
}

TEST_CASE("A crash at any write leaves no reservation and counts nothing twice", "[coordinator]") {
  const auto prepare = [](World& world) {
    SetLimit(world, kTime, 45 * kSecond);
    world.quota_slice = absl::Seconds(10);
    TakeTime(world, 10);
    world.StartWithWorker();
  };
  World calm;
  prepare(calm);
  calm.Create(calm.Request());
  calm.AwaitEnd();
  const QuotaAccount expected = Account(calm, kTime);
  CHECK(expected.reserved == 0);
  const int commits = calm.store.commits();

  for (int crash = 2; crash <= commits; ++crash) {
    const bool is_committed = crash % 2 == 0;
    CAPTURE(crash, is_committed);
    World world;
    prepare(world);
    world.store.CrashAt(crash, is_committed);
    world.coordinator->CreateJob(world.Request()).IgnoreError();  // It may be what crashes.
    while (!world.store.is_dead() && !world.memory.LookupJob(kJob)->has_end_time()) world.Turn();
    world.Stop();
    world.store.Revive();
    world.StartWithWorker();
    world.coordinator->CreateJob(world.Request()).IgnoreError();
    world.AwaitEnd();

    CHECK(Account(world, kTime) == expected);
    CHECK(Account(world, QuotaResource::kOpenJobs).reserved == 0);
  }
}

TEST_CASE("A job that is cancelled while a record waits for the store is counted once",
          "[coordinator]") {
  const auto prepare = [](World& world) {
    TakeTime(world, 10);
    world.StartWithWorker();
  };
  World calm;
  prepare(calm);
  calm.Create(calm.Request());
  calm.AwaitEnd();
  for (int full = 1; full <= calm.store.commits(); ++full) {
    CAPTURE(full);
    World world;
    prepare(world);
    world.store.FillAt(full);
    if (!world.coordinator->CreateJob(world.Request()).ok()) continue;
    while (!world.store.is_full() && !world.memory.LookupJob(kJob)->has_end_time()) world.Turn();
    world.store.Revive();

    REQUIRE_THAT(world.coordinator->CancelJob(kJob).status(), IsOk());

    const v1::Job job = world.AwaitEnd();
    CHECK(Account(world, kTime).used ==
          TimeUtil::DurationToMicroseconds(job.budget_use().device_time()));
  }
}

// Jobs that run side by side, are cancelled, paused and created again, over crashes of the
// coordinator at any of its writes.
TEST_CASE("No run of jobs, crashes and cancellations exceeds a quota or leaks of it",
          "[coordinator]") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    std::minstd_rand random(seed);
    World world;
    SetLimit(world, QuotaResource::kOpenJobs, 3);
    SetLimit(world, kTime, 120 * kSecond);
    SetLimit(world, QuotaResource::kTokens, 20'000);
    world.quota_slice = absl::Seconds(7);
    world.coder.Bill(900);
    TakeTime(world, 5);
    world.StartWithWorker();
    const auto check = [&] {
      for (const QuotaResource resource : store::kQuotaResources) {
        const QuotaAccount account = Account(world, resource);
        REQUIRE(account.used + account.reserved <= *account.allowed);
      }
    };
    int created = 0;
    for (int step = 0; step < 60; ++step) {
      const std::string name =
          absl::StrCat("projects/p/jobs/j", created == 0 ? 0 : random() % created);
      switch (random() % 6) {
        case 0:
        case 1: {
          v1::CreateJobRequest request = RequestFor(world, absl::StrCat("j", created));
          request.mutable_job()->mutable_budget()->set_max_trials(4);
          if (random() % 2 == 0) request.mutable_job()->mutable_search()->set_coder("llm");
          if (world.coordinator->CreateJob(request).ok()) ++created;
          break;
        }
        case 2:
          world.coordinator->CancelJob(name).IgnoreError();
          break;
        case 3:
          world.coordinator->PauseJob(name).IgnoreError();
          break;
        case 4:
          world.coordinator->ResumeJob(name).IgnoreError();
          break;
        default:
          world.store.CrashAt(1 + static_cast<int>(random() % 20), random() % 2 == 0);
          for (int i = 0; i < 5; ++i) world.Turn();
          world.Stop();
          world.store.Revive();
          if (random() % 2 == 0) world.worker.Restart();
          world.StartWithWorker();
      }
      check();
    }
    world.Stop();
    world.store.Revive();
    world.StartWithWorker();
    for (int i = 0; i < created; ++i) {
      world.coordinator->CancelJob(absl::StrCat("projects/p/jobs/j", i)).IgnoreError();
    }
    const auto is_over = [&] {
      return world.memory
          .ListJobs({.states = {v1::Job::STATE_PENDING, v1::Job::STATE_RUNNING,
                                v1::Job::STATE_CANCELLING, v1::Job::STATE_PAUSED}})
          ->jobs.empty();
    };
    const absl::Time deadline = absl::Now() + kPatience;
    while (!is_over() && absl::Now() < deadline) world.Turn();
    REQUIRE(is_over());

    check();
    for (const QuotaResource resource : store::kQuotaResources) {
      CHECK(Account(world, resource).reserved == 0);
    }
  }
}

}  // namespace
}  // namespace mtmc::coordinator

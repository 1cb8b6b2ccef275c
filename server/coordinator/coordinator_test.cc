// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/coordinator.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/executor.h"
#include "common/base/temp_dir.h"
#include "common/metrics/metrics.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/coordinator/fake_parts.h"
#include "server/store/fake_job_store.h"
#include "server/store/file_artifact_store.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;
using testing::StatusIs;

constexpr char kJob[] = "projects/p/jobs/job";
constexpr char kRequestId[] = "0b8b1c52-25e5-4d4a-b6a8-0a4a6a2f4f52";
// For a condition that a loaded host reaches in milliseconds.
constexpr absl::Duration kPatience = absl::Seconds(20);

// A coordinator with a store, a coder, a policy and a worker, in one process.
struct World {
  base::RealClock clock;
  base::TempDir folder = *base::TempDir::Create("world");
  store::FakeJobStore memory;
  CrashingStore store{memory};
  std::unique_ptr<store::FileArtifactStore> artifacts =
      *store::FileArtifactStore::Open(folder.path().string(), {});
  FakeCoder coder;
  FakePolicy policy;
  FakeWorker worker;
  metrics::Registry registry{"test"};
  CoordinatorMetrics metrics{registry};
  base::Executor executor{{.name = "test"}};
  std::unique_ptr<Coordinator> coordinator;
  absl::Duration patience = LeaseManager::Options().patience;

  ~World() { Stop(); }

  void Start() {
    auto created =
        Coordinator::Create({.leases = {.hold = absl::Milliseconds(50), .patience = patience},
                             .search = {.min_backoff = absl::Milliseconds(1),
                                        .max_backoff = absl::Milliseconds(5),
                                        .device_poll = absl::Milliseconds(1)},
                             .tick = absl::Milliseconds(2)},
                            {.store = store,
                             .artifacts = *artifacts,
                             .coder = coder,
                             .policy = policy,
                             .clock = clock,
                             .executor = executor,
                             .metrics = metrics});
    REQUIRE_THAT(created.status(), IsOk());
    coordinator = *std::move(created);
  }

  void StartWithWorker() {
    Start();
    worker.Attach(*coordinator);
  }

  void Stop() {
    if (coordinator == nullptr) return;
    coordinator->Stop();
    // Readers of the feed end before it does.
    absl::Notification is_idle;
    REQUIRE_THAT(executor.Submit([&] { is_idle.Notify(); }), IsOk());
    is_idle.WaitForNotification();
    coordinator.reset();
  }

  v1::CreateJobRequest Request(const std::string& strategy = "mtmc") {
    v1::CreateJobRequest request;
    request.set_parent("projects/p");
    request.set_job_id("job");
    request.set_request_id(kRequestId);
    v1::Job& job = *request.mutable_job();
    *job.mutable_problem()->mutable_source() = *artifacts->Put("class Model: pass");
    job.mutable_search()->set_strategy(strategy);
    job.mutable_search()->set_max_steps(3);
    job.mutable_budget()->set_max_trials(6);
    return request;
  }

  void Create(const v1::CreateJobRequest& request) {
    REQUIRE_THAT(coordinator->CreateJob(request).status(), IsOk());
  }

  // Waits for a condition on what is recorded.
  void Await(const std::function<bool(const v1::Job&)>& condition) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (absl::Now() < deadline) {
      const auto job = memory.LookupJob(kJob);
      if (job.ok() && condition(*job)) return;
      Turn();
    }
    FAIL("waited in vain; the job is " << memory.LookupJob(kJob)->DebugString());
  }

  // Lets the loop and its timers run for a moment of real time.
  void Turn() {
    absl::Mutex mu;
    absl::CondVar never;
    absl::MutexLock lock(&mu);
    never.WaitWithTimeout(&mu, absl::Milliseconds(1));
  }

  v1::Job AwaitEnd() {
    Await([](const v1::Job& job) { return job.has_end_time(); });
    return *memory.LookupJob(kJob);
  }

  std::vector<v1::Candidate> Candidates() {
    return memory.ListCandidates({.job = kJob, .page_size = 500})->candidates;
  }

  std::vector<v1::JobEvent> Events() { return *memory.ReadEvents(kJob, 0, 10'000); }

  bool HasNotice(const std::string& part) {
    for (const v1::JobEvent& event : Events()) {
      if (event.notice().find(part) != std::string::npos) return true;
    }
    return false;
  }
};

// What must not depend on crashes: everything but times.
std::string Essence(World& world) {
  std::string text;
  v1::Job job = *world.memory.LookupJob(kJob);
  text += v1::Job::State_Name(job.state()) + " " + job.end_reason() + " " + job.best_candidate() +
          " " + std::to_string(job.best_speedup()) + " " +
          std::to_string(job.budget_use().trials()) + "\n";
  for (v1::Candidate candidate : world.Candidates()) {
    candidate.clear_create_time();
    candidate.clear_end_time();
    text += candidate.ShortDebugString() + "\n";
  }
  return text;
}

// Events are gapless and tell each fate once.
void CheckEvents(World& world) {
  int64_t expected = 0;
  std::set<std::string> finished;
  for (const v1::JobEvent& event : world.Events()) {
    CHECK(event.sequence() == ++expected);
    const auto state = event.candidate().state();
    if (state == v1::Candidate::STATE_EVALUATED || state == v1::Candidate::STATE_REJECTED) {
      CHECK(finished.insert(event.candidate().name()).second);
    }
  }
}

}  // namespace

TEST_CASE("Coordinator brings a job from its source to a winner", "[coordinator]") {
  World world;
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  CHECK(job.state() == v1::Job::STATE_SUCCEEDED);
  CHECK(job.end_reason() == "trials");
  CHECK(job.budget_use().trials() == 6);
  CHECK(job.inspection().minimum_bytes() == 64);
  CHECK(job.best_speedup() > 1);
  CHECK(world.Candidates().size() == 7);
  CheckEvents(world);
}

TEST_CASE("Coordinator gives the same result for the same seed", "[coordinator]") {
  World first, second;
  for (World* world : {&first, &second}) {
    world->StartWithWorker();
    world->Create(world->Request());
    world->AwaitEnd();
  }

  CHECK(Essence(first) == Essence(second));
}

TEST_CASE("Coordinator runs every strategy", "[coordinator]") {
  const std::string strategy = GENERATE("greedy", "random");
  World world;
  world.StartWithWorker();

  world.Create(world.Request(strategy));

  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
  CHECK(world.Candidates()[1].decision().policy() == strategy);
}

TEST_CASE("Coordinator never tries an action twice on one program", "[coordinator]") {
  World world;
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request("greedy");
  request.mutable_job()->mutable_budget()->set_max_trials(40);

  world.Create(request);
  const v1::Job job = world.AwaitEnd();

  CHECK(job.end_reason() == "no_action");
  std::set<std::string> tried;
  for (const v1::Candidate& candidate : world.Candidates()) {
    if (candidate.trial() == 0) continue;
    CHECK(tried.insert(candidate.parents(0) + " " + candidate.action().text()).second);
  }
}

TEST_CASE("Coordinator goes on by itself after a crash at any write", "[coordinator]") {
  const bool is_committed = GENERATE(false, true);
  CAPTURE(is_committed);
  World calm;
  calm.StartWithWorker();
  calm.Create(calm.Request());
  calm.AwaitEnd();
  const std::string expected = Essence(calm);
  const int commits = calm.store.commits();
  REQUIRE(commits > 30);

  for (int crash = 1; crash <= commits; ++crash) {
    CAPTURE(crash);
    World world;
    world.StartWithWorker();
    const v1::CreateJobRequest request = world.Request();
    world.store.CrashAt(crash, is_committed);
    world.coordinator->CreateJob(request).IgnoreError();  // It may be what crashes.
    while (!world.store.is_dead() && !world.memory.LookupJob(kJob)->has_end_time()) world.Turn();
    world.Stop();
    world.store.Revive();
    world.StartWithWorker();
    world.Create(request);
    world.AwaitEnd();

    REQUIRE(Essence(world) == expected);
    CheckEvents(world);
    for (const auto& [name, count] : world.worker.executions()) {
      INFO(name);
      CHECK(count == 1);
    }
  }
}

TEST_CASE("Coordinator goes on when worker and coordinator die together", "[coordinator]") {
  World calm;
  calm.StartWithWorker();
  calm.Create(calm.Request());
  calm.AwaitEnd();

  for (int crash = 3; crash <= calm.store.commits(); crash += 5) {
    CAPTURE(crash);
    World world;
    world.StartWithWorker();
    world.store.CrashAt(crash, /*is_committed=*/true);
    world.coordinator->CreateJob(world.Request()).IgnoreError();  // As above.
    while (!world.store.is_dead() && !world.memory.LookupJob(kJob)->has_end_time()) world.Turn();
    world.Stop();
    world.store.Revive();
    world.worker.Restart();
    world.StartWithWorker();
    world.Create(world.Request());
    world.AwaitEnd();

    REQUIRE(Essence(world) == Essence(calm));
    CheckEvents(world);
  }
}

TEST_CASE("Coordinator returns the job of a repeated request", "[coordinator]") {
  World world;
  world.Start();

  const auto first = world.coordinator->CreateJob(world.Request());
  const auto second = world.coordinator->CreateJob(world.Request());
  v1::CreateJobRequest other = world.Request();
  other.clear_request_id();

  CHECK(first->job().uid() == second->job().uid());
  CHECK(rpc::ErrorReason(world.coordinator->CreateJob(other).status()) == "JOB_ALREADY_EXISTS");
}

TEST_CASE("Coordinator creates nothing to validate a job", "[coordinator]") {
  World world;
  world.Start();
  v1::CreateJobRequest request = world.Request();
  request.set_validate_only(true);

  const auto response = world.coordinator->CreateJob(request);

  CHECK(response->job().search().policy() == "rules");
  CHECK(world.memory.ListJobs({})->jobs.empty());
  request.mutable_job()->mutable_problem()->mutable_source()->set_sha256(std::string(64, '0'));
  CHECK(rpc::ErrorReason(world.coordinator->CreateJob(request).status()) == "ARTIFACT_NOT_FOUND");
}

TEST_CASE("Coordinator lets a job wait for a worker and says so", "[coordinator]") {
  World world;
  world.Start();
  world.Create(world.Request());
  world.Await([&](const v1::Job&) {
    return world.HasNotice("waits for a worker: no worker is connected");
  });
  CHECK(world.memory.LookupJob(kJob)->state() == v1::Job::STATE_PENDING);

  world.worker.Attach(*world.coordinator);

  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
}

TEST_CASE("Coordinator says which isolation a job waits for", "[coordinator]") {
  World world;
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request();
  request.mutable_job()->mutable_evaluation()->set_min_isolation(v1::ISOLATION_CONFINED);
  world.Create(request);
  world.Await([&](const v1::Job&) { return world.HasNotice("no worker with isolation confined"); });

  CHECK(world.memory.LookupJob(kJob)->state() == v1::Job::STATE_PENDING);
  CHECK(world.worker.executions().empty());
  CHECK(world.HasNotice("workers have restricted; see mtmc doctor"));
}

TEST_CASE("Coordinator says why a job waits that has lost its worker", "[coordinator]") {
  World world;
  world.patience = absl::Milliseconds(5);
  world.worker.isolation = v1::ISOLATION_CONFINED;
  world.worker.work = [&world](const v1::Lease& lease) {
    // From its next call on.
    world.worker.isolation = v1::ISOLATION_PROCESS;
    return FakeWork(lease);
  };
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request();
  request.mutable_job()->mutable_evaluation()->set_min_isolation(v1::ISOLATION_CONFINED);

  world.Create(request);
  world.Await([&](const v1::Job&) { return world.HasNotice("workers have process"); });
  const v1::Job job = *world.memory.LookupJob(kJob);
  world.Stop();

  CHECK(job.state() == v1::Job::STATE_RUNNING);
  CHECK(world.worker.executions() == std::map<std::string, int>{{kJob, 1}});
}

TEST_CASE("Coordinator asks for a job's least isolation with every lease", "[coordinator]") {
  World world;
  std::set<std::string> asked;
  world.worker.isolation = v1::ISOLATION_CONFINED;
  world.worker.work = [&asked](const v1::Lease& lease) {
    asked.insert(v1::Isolation_Name(lease.has_inspection()
                                        ? lease.inspection().min_isolation()
                                        : lease.evaluation().options().min_isolation()));
    return FakeWork(lease);
  };
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request();
  request.mutable_job()->mutable_evaluation()->set_min_isolation(v1::ISOLATION_CONFINED);

  world.Create(request);
  const v1::Job job = world.AwaitEnd();
  world.Stop();

  CHECK(job.state() == v1::Job::STATE_SUCCEEDED);
  CHECK(asked == std::set<std::string>{"ISOLATION_CONFINED"});
}

TEST_CASE("Coordinator goes on with the rules when the policy does not answer well",
          "[coordinator]") {
  World world;
  v1::ChooseActionResponse rubbish;
  rubbish.set_chosen(77);
  const std::vector<absl::StatusOr<v1::ChooseActionResponse>> answers = {
      absl::UnavailableError("down"), absl::DeadlineExceededError("slow"), rubbish};
  const auto answer = GENERATE_REF(from_range(answers));
  world.policy.answer = [answer](const v1::ChooseActionRequest&) { return answer; };
  world.StartWithWorker();

  world.Create(world.Request());
  world.AwaitEnd();

  CHECK(world.HasNotice("the rules decide"));
  CHECK(world.Candidates()[1].decision().is_fallback());
  CHECK(world.Candidates()[1].decision().policy() == "rules");
  CHECK(world.registry.Render().find("mtmc_policy_fallback_total") != std::string::npos);
}

TEST_CASE("Coordinator waits for a gateway that is down and resumes by itself", "[coordinator]") {
  World world;
  world.coder.Break(absl::UnavailableError("connection refused"));
  world.StartWithWorker();
  world.Create(world.Request());
  world.Await([&](const v1::Job&) { return world.HasNotice("the gateway does not answer"); });

  world.coder.Break(absl::OkStatus());

  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
  CHECK(world.HasNotice("the gateway answers again"));
}

TEST_CASE("Coordinator fails a job whose coder is not there", "[coordinator]") {
  World world;
  world.coder.Break(rpc::MakeError(absl::StatusCode::kNotFound, "CODER_NOT_FOUND", "no coder llm"));
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  CHECK(job.state() == v1::Job::STATE_FAILED);
  CHECK(job.failure().reason() == "CODER_NOT_FOUND");
}

TEST_CASE("Coordinator rejects a candidate without a program and goes on", "[coordinator]") {
  World world;
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request("greedy");
  request.mutable_job()->mutable_budget()->set_max_trials(40);

  world.Create(request);
  world.AwaitEnd();

  bool has_rejected = false;
  for (const v1::Candidate& candidate : world.Candidates()) {
    if (candidate.state() != v1::Candidate::STATE_REJECTED) continue;
    has_rejected = true;
    CHECK(candidate.coder_failure() == "UNSUPPORTED: cannot reorder");
    CHECK(candidate.reward() < 0);
  }
  CHECK(has_rejected);
}

TEST_CASE("Coordinator fails a job whose problem cannot be served", "[coordinator]") {
  World world;
  world.worker.work = [](const v1::Lease&) {
    v1::LeaseResult result;
    result.mutable_problem_failure()->set_reason("PROBLEM_NOT_TRACEABLE");
    result.mutable_problem_failure()->set_line(12);
    return result;
  };
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  CHECK(job.state() == v1::Job::STATE_FAILED);
  CHECK(job.failure().reason() == "PROBLEM_NOT_TRACEABLE");
  CHECK(job.failure().line() == 12);
}

TEST_CASE("Coordinator fails a job without a correct candidate", "[coordinator]") {
  World world;
  const auto measure = world.worker.work;
  world.worker.work = [measure](const v1::Lease& lease) {
    v1::LeaseResult result = measure(lease);
    if (!result.has_evaluation()) return result;
    result.mutable_evaluation()->mutable_failure()->set_kind(v1::Failure::KIND_COMPILE);
    return result;
  };
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  CHECK(job.state() == v1::Job::STATE_FAILED);
  CHECK(job.failure().reason() == "NO_CORRECT_CANDIDATE");
}

TEST_CASE("Coordinator answers a second job from the evaluation cache", "[coordinator]") {
  World world;
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();
  const auto before = world.worker.executions();
  v1::CreateJobRequest again = world.Request();
  again.set_job_id("again");
  again.clear_request_id();

  world.Create(again);
  while (!world.memory.LookupJob("projects/p/jobs/again")->has_end_time()) world.Turn();

  CHECK(world.worker.executions() == before);
  const auto page = world.memory.ListCandidates({.job = "projects/p/jobs/again"});
  CHECK(page->candidates[0].evaluation().is_cached());
}

TEST_CASE("Coordinator tells the worker which speedup is to beat", "[coordinator]") {
  World world;
  std::vector<double> speedups;
  world.worker.work = [&, measure = world.worker.work](const v1::Lease& lease) {
    if (lease.has_evaluation()) speedups.push_back(lease.evaluation().speedup_to_beat());
    return measure(lease);
  };
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  REQUIRE(speedups.size() > 1);
  CHECK(speedups.front() == 0);
  CHECK(speedups[1] > 0);
  CHECK(std::is_sorted(speedups.begin(), speedups.end()));
  CHECK(speedups.back() <= job.best_speedup());
}

TEST_CASE("Coordinator cancels a job that waits", "[coordinator]") {
  World world;
  world.Start();
  world.Create(world.Request());

  const auto cancelling = world.coordinator->CancelJob(kJob);
  const v1::Job job = world.AwaitEnd();

  CHECK(cancelling->state() == v1::Job::STATE_CANCELLING);
  CHECK(job.state() == v1::Job::STATE_CANCELLED);
  CHECK(job.end_reason() == "cancelled");
  CHECK(world.coordinator->CancelJob(kJob)->state() == v1::Job::STATE_CANCELLED);
}

TEST_CASE("Coordinator cancels a job while its gateway is down and over a restart",
          "[coordinator]") {
  World world;
  world.coder.Break(absl::UnavailableError("down"));
  world.StartWithWorker();
  world.Create(world.Request());
  world.Await([&](const v1::Job&) { return world.HasNotice("the gateway does not answer"); });
  // Dies right after it has recorded that the job is to end.
  world.store.CrashAt(1, /*is_committed=*/true);
  world.coordinator->CancelJob(kJob).status().IgnoreError();  // It has died.
  world.Stop();
  world.store.Revive();

  world.StartWithWorker();

  CHECK(world.AwaitEnd().state() == v1::Job::STATE_CANCELLED);
  CHECK(world.Candidates()[0].state() == v1::Candidate::STATE_CANCELLED);
}

TEST_CASE("Coordinator ends a job at its wall time", "[coordinator]") {
  World world;
  world.coder.Break(absl::UnavailableError("down"));
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request();
  request.mutable_job()->mutable_budget()->mutable_max_wall_time()->set_nanos(30'000'000);

  world.Create(request);
  const v1::Job job = world.AwaitEnd();

  CHECK(job.end_reason() == "wall_time");
  CHECK(job.state() == v1::Job::STATE_FAILED);
}

TEST_CASE("Coordinator streams every event once from a cursor", "[coordinator]") {
  World world;
  world.StartWithWorker();
  world.Create(world.Request());
  std::vector<int64_t> sequences;
  absl::Notification is_closed;

  world.coordinator->WatchJob(kJob, 5,
                              {.write =
                                   [&](const v1::JobEvent& event) {
                                     sequences.push_back(event.sequence());
                                     return absl::OkStatus();
                                   },
                               .close = [&](const absl::Status&) { is_closed.Notify(); }});
  is_closed.WaitForNotification();

  std::vector<int64_t> expected;
  for (const v1::JobEvent& event : world.Events()) {
    if (event.sequence() > 5) expected.push_back(event.sequence());
  }
  CHECK(sequences == expected);
}

TEST_CASE("Coordinator shows the graph in one event only", "[coordinator]") {
  World world;
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();

  int graphs = 0;
  for (const v1::JobEvent& event : world.Events()) {
    if (event.job().has_inspection()) ++graphs;
  }

  CHECK(graphs == 1);
}

}  // namespace mtmc::coordinator

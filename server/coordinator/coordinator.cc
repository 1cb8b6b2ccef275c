// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/coordinator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/base/enum_word.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "google/protobuf/util/time_util.h"
#include "server/coordinator/resource_name.h"
#include "server/search/job_options.h"
#include "server/search/known_step.h"
#include "server/store/artifact_store.h"
#include "server/store/job_store.h"

namespace mtmc::coordinator {
namespace {

using base::Log;
using base::LogLevel;

// Before it is looked why an answer takes long.
constexpr absl::Duration kAskAgain = absl::Seconds(1);

// Turns of the loop take milliseconds; a loop that has stopped answers nothing.
constexpr absl::Duration kAskTimeout = absl::Seconds(20);

// Above a turn under load and a stutter of the machine.
constexpr absl::Duration kMaxLag = absl::Seconds(10);

// Nanoseconds between two counts of the jobs by state.
constexpr int64_t kShownEvery = 1'000'000'000;

// The accounts of all projects are read for it.
constexpr absl::Duration kQuotasShownEvery = absl::Seconds(5);

absl::Status Stopping() {
  return rpc::MakeError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                        "the coordinator stops or is stuck; try again");
}

absl::Status NotEnded(const std::string& job) {
  return rpc::MakeError(absl::StatusCode::kFailedPrecondition, "JOB_NOT_ENDED",
                        absl::StrCat("job ", job, " has not ended; cancel it first"),
                        {{"job", job}});
}

v1::JobEvent CreationEvent(const v1::Job& job) {
  v1::JobEvent event;
  *event.mutable_time() = job.create_time();
  *event.mutable_job() = job;
  return event;
}

}  // namespace

template <class T>
absl::StatusOr<T> Coordinator::Ask(std::function<absl::StatusOr<T>()> task, Turn turn) {
  struct Answer {
    // The first counts. Called on any thread.
    void Tell(absl::StatusOr<T> told) {
      if (is_told.exchange(true)) return;
      value = std::move(told);
      is_done.Notify();
    }

    std::atomic<bool> is_told = false;
    absl::Notification is_done;
    absl::StatusOr<T> value = Stopping();
  };

  if (is_stopped_) return Stopping();
  auto answer = std::make_shared<Answer>();
  std::function<void()> run = [this, answer, task = std::move(task)] {
    parts_.store.AfterFlush([answer, value = task()]() mutable { answer->Tell(std::move(value)); });
  };
  turn == Turn::kFirst ? loop_.PostFirst(std::move(run)) : loop_.Post(std::move(run));
  for (absl::Duration left = kAskTimeout; left > absl::ZeroDuration(); left -= kAskAgain) {
    if (answer->is_done.WaitForNotificationWithTimeout(kAskAgain)) return std::move(answer->value);
    // What cannot be written is tried for as long as it takes; who asked hears why it waits.
    loop_.Post([this, answer] {
      const absl::Status status = parts_.store.Commit({});
      if (!status.ok()) answer->Tell(status);
    });
  }
  return Stopping();
}

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Create(const Options& options,
                                                                 const Parts& parts) {
  auto coordinator = std::unique_ptr<Coordinator>(new Coordinator(options, parts));
  MTMC_RETURN_IF_ERROR(coordinator->Load());
  coordinator->has_events_sent_ = parts.store.SendEvents(
      [&feed = parts.feed](const std::string& job, std::vector<v1::JobEvent> events) {
        feed.Tell(job, std::move(events));
      });
  // The loop is the thread that commits.
  parts.store.BeginGroups();
  coordinator->loop_.Post([self = coordinator.get()] { self->Tick(); });
  coordinator->loop_.Start();
  return coordinator;
}

Coordinator::Coordinator(const Options& options, const Parts& parts)
    : options_(options),
      parts_(parts),
      blobs_(parts.artifacts),
      retention_(options.retention,
                 {.store = parts.store,
                  .artifacts = parts.artifacts,
                  .clock = parts.clock,
                  .metrics = parts.metrics,
                  .loop = loop_,
                  .delete_job = [this](const std::string& job) { return RemoveJob(job); }}) {}

Coordinator::~Coordinator() { Stop(); }

void Coordinator::ReleaseCalls() {
  loop_.Post([this] { leases_->ReleaseHeld(); });
}

void Coordinator::Stop() {
  // The store may be another coordinator's by the second call.
  if (is_stopped_.exchange(true)) return;
  retention_.Stop();
  loop_.Stop();
  parts_.store.EndGroups();
  parts_.metrics.ShowNothing();
}

absl::Status Coordinator::Load() {
  MTMC_ASSIGN_OR_RETURN(
      leases_, LeaseManager::Create(options_.leases, parts_.clock, parts_.store, parts_.metrics));
  store::JobQuery query{.states = {v1::Job::STATE_PENDING, v1::Job::STATE_RUNNING,
                                   v1::Job::STATE_CANCELLING, v1::Job::STATE_PAUSED},
                        .page_size = 500};
  do {
    MTMC_ASSIGN_OR_RETURN(const store::JobPage page, parts_.store.ListJobs(query));
    for (const v1::Job& job : page.jobs) {
      Log(LogLevel::kInfo, "job resumed", {{"job", job.name()}});
      StartSearch(job.name());
    }
    query.page_token = page.next_page_token;
  } while (!query.page_token.empty());
  return absl::OkStatus();
}

absl::StatusOr<v1::CreateJobResponse> Coordinator::CreateJob(const v1::CreateJobRequest& request,
                                                             const MayRead& may_read,
                                                             const std::string& creator) {
  MTMC_RETURN_IF_ERROR(CheckProjectName(request.parent()));
  MTMC_RETURN_IF_ERROR(CheckResourceId("job_id", request.job_id()));
  MTMC_RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  v1::CreateJobResponse response;
  MTMC_ASSIGN_OR_RETURN(const std::vector<v1::Job> earlier, FindByRequest(request));
  if (!earlier.empty()) {
    *response.mutable_job() = earlier.front();
    return response;
  }
  MTMC_ASSIGN_OR_RETURN(v1::Job job, search::ResolveJob(request.job()));
  MTMC_RETURN_IF_ERROR(CheckUploaded("source", job.problem().source(), may_read));
  if (job.has_start_program()) {
    MTMC_RETURN_IF_ERROR(CheckUploaded("start program", job.start_program(), may_read));
  }
  const std::string id = request.job_id().empty() ? base::MakeResourceId("job") : request.job_id();
  job.set_name(absl::StrCat(request.parent(), "/jobs/", id));
  job.set_uid(base::MakeUuid4());
  job.set_creator(creator);
  job.set_state(v1::Job::STATE_PENDING);
  *job.mutable_create_time() = google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
      absl::ToUnixNanos(parts_.clock.Now()));
  if (!request.validate_only()) {
    auto insert = [this, job, id = request.request_id()] { return Insert(job, id); };
    absl::StatusOr<v1::Job> inserted = Ask<v1::Job>(insert);
    if (absl::IsAlreadyExists(inserted.status())) {
      // The same request may have come twice at once.
      MTMC_ASSIGN_OR_RETURN(const std::vector<v1::Job> same, FindByRequest(request));
      if (same.empty()) {
        return rpc::MakeError(absl::StatusCode::kAlreadyExists, "JOB_ALREADY_EXISTS",
                              absl::StrCat("job ", job.name(), " exists; choose another job_id"),
                              {{"job", job.name()}});
      }
      inserted = same.front();
    }
    if (!inserted.ok()) return inserted.status();
    job = *std::move(inserted);
  }
  *response.mutable_job() = std::move(job);
  return response;
}

absl::Status Coordinator::CheckUploaded(const std::string& what, const v1::Digest& digest,
                                        const MayRead& may_read) {
  MTMC_RETURN_IF_ERROR(store::CheckDigest(digest));
  absl::StatusOr<bool> is_there = may_read ? may_read(digest) : true;
  // Not asked for what is another's: how long that takes would tell whether it is there.
  if (is_there.ok() && *is_there) is_there = parts_.artifacts.Contains(digest);
  if (!is_there.ok()) return is_there.status();
  if (*is_there) return absl::OkStatus();
  return rpc::MakeError(absl::StatusCode::kFailedPrecondition, "ARTIFACT_NOT_FOUND",
                        absl::StrCat("the ", what, " ", digest.sha256(),
                                     " was not uploaded; upload it and create the job again"),
                        {{"sha256", digest.sha256()}});
}

absl::StatusOr<std::vector<v1::Job>> Coordinator::FindByRequest(
    const v1::CreateJobRequest& request) {
  if (request.request_id().empty()) return std::vector<v1::Job>();
  MTMC_ASSIGN_OR_RETURN(
      store::JobPage page,
      parts_.store.ListJobs({.project = request.parent(), .request_id = request.request_id()}));
  return std::move(page.jobs);
}

absl::StatusOr<v1::Job> Coordinator::Insert(v1::Job job, const std::string& request_id) {
  MTMC_RETURN_IF_ERROR(CheckQuota(job));
  store::Write write{.job_name = job.name(), .new_job = job, .request_id = request_id};
  write.events.push_back(CreationEvent(job));
  write.quota = {{.resource = store::QuotaResource::kOpenJobs, .reserved = 1}};
  MTMC_RETURN_IF_ERROR(parts_.store.Commit(write));
  OnEvents(job.name());
  StartSearch(job.name());
  return job;
}

// A job that could do nothing is not begun.
absl::Status Coordinator::CheckQuota(const v1::Job& job) {
  for (const auto resource : {store::QuotaResource::kDeviceTime, store::QuotaResource::kTokens}) {
    const bool is_needed =
        resource != store::QuotaResource::kTokens || job.search().coder() != search::kBuiltinCoder;
    if (!is_needed) continue;
    MTMC_ASSIGN_OR_RETURN(const auto account, parts_.store.FindQuota(job.name(), resource));
    if (account.allowed && account.used >= *account.allowed) {
      return store::QuotaExceeded(store::ProjectOfJob(job.name()), resource, account);
    }
  }
  return absl::OkStatus();
}

absl::Status Coordinator::SetQuotaLimits(const std::vector<store::QuotaLimit>& limits) {
  return Ask<bool>([this, limits]() -> absl::StatusOr<bool> {
           MTMC_RETURN_IF_ERROR(parts_.store.Commit({.limits = limits}));
           // Shown with the next tick.
           next_quotas_ = absl::InfinitePast();
           return true;
         })
      .status();
}

absl::StatusOr<v1::Job> Coordinator::AskSearch(const std::string& name,
                                               absl::StatusOr<v1::Job> (search::Search::*what)()) {
  MTMC_RETURN_IF_ERROR(CheckJobName(name));
  return Ask<v1::Job>([this, name, what]() -> absl::StatusOr<v1::Job> {
    auto found = searches_.find(name);
    if (found == searches_.end()) {
      absl::StatusOr<v1::Job> job = parts_.store.LookupJob(name);
      if (!job.ok() || search::HasEnded(*job)) return job;
      // Its search gave up on the store; one is needed to change the job.
      StartSearch(name);
      found = searches_.find(name);
      if (found == searches_.end()) return job;
    }
    return (*found->second.*what)();
  });
}

absl::StatusOr<v1::Job> Coordinator::CancelJob(const std::string& name) {
  return AskSearch(name, &search::Search::Cancel);
}

absl::StatusOr<v1::Job> Coordinator::PauseJob(const std::string& name) {
  return AskSearch(name, &search::Search::Pause);
}

absl::StatusOr<v1::Job> Coordinator::ResumeJob(const std::string& name) {
  return AskSearch(name, &search::Search::Resume);
}

absl::Status Coordinator::DeleteJob(const std::string& name) {
  MTMC_RETURN_IF_ERROR(CheckJobName(name));
  return Ask<bool>([this, name]() -> absl::StatusOr<bool> {
           MTMC_ASSIGN_OR_RETURN(const v1::Job job, parts_.store.LookupJob(name));
           if (!search::HasEnded(job)) return NotEnded(name);
           MTMC_RETURN_IF_ERROR(RemoveJob(name));
           return true;
         })
      .status();
}

absl::Status Coordinator::RemoveJob(const std::string& name) {
  MTMC_RETURN_IF_ERROR(parts_.store.Commit({.job_name = name, .is_job_deleted = true}));
  // Whoever watches it finds that it is not there.
  OnEvents(name);
  Log(LogLevel::kInfo, "job deleted", {{"job", name}});
  return absl::OkStatus();
}

void Coordinator::Synchronize(const v1::SynchronizeRequest& request, const std::string& identity,
                              LeaseManager::Reply reply) {
  // Shared, so that it is copied once.
  auto copy = std::make_shared<v1::SynchronizeRequest>(request);
  loop_.Post([this, copy, identity, reply = std::move(reply)]() mutable {
    leases_->Synchronize(std::move(*copy), identity, std::move(reply));
  });
}

void Coordinator::Disconnect(const std::string& worker, const std::string& instance,
                             const std::string& identity) {
  loop_.Post(
      [this, worker, instance, identity] { leases_->Disconnect(worker, instance, identity); });
}

absl::StatusOr<std::vector<v1::Worker>> Coordinator::ListWorkers() {
  using Workers = std::vector<v1::Worker>;
  return Ask<Workers>([this]() -> absl::StatusOr<Workers> { return leases_->ListWorkers(); },
                      Turn::kInOrder);
}

absl::StatusOr<v1::Worker> Coordinator::LookupWorker(const std::string& name) {
  return Ask<v1::Worker>([this, name] { return leases_->LookupWorker(name); }, Turn::kInOrder);
}

absl::StatusOr<v1::Worker> Coordinator::SetDraining(const std::string& name, bool is_draining) {
  return Ask<v1::Worker>(
      [this, name, is_draining] { return leases_->SetDraining(name, is_draining); },
      Turn::kInOrder);
}

absl::Status Coordinator::ImportRecords(const std::vector<store::LearnedRecord>& records) {
  return Ask<bool>([this, records]() -> absl::StatusOr<bool> {
           MTMC_RETURN_IF_ERROR(parts_.store.Commit({.learned = records}));
           return true;
         })
      .status();
}

absl::Status Coordinator::DeleteRecord(const std::string& name) {
  return Ask<bool>([this, name]() -> absl::StatusOr<bool> {
           MTMC_RETURN_IF_ERROR(parts_.store.LookupRecord(name).status());
           MTMC_RETURN_IF_ERROR(parts_.store.Commit({.refuted = {name}}));
           return true;
         })
      .status();
}

void Coordinator::StartSearch(const std::string& job) {
  auto search = std::make_shared<search::Search>(job, options_.search,
                                                 search::SearchTools{.loop = loop_,
                                                                     .store = parts_.store,
                                                                     .artifacts = parts_.artifacts,
                                                                     .readers = readers_,
                                                                     .blobs = blobs_,
                                                                     .coder = parts_.coder,
                                                                     .policy = parts_.policy,
                                                                     .evaluator = *leases_,
                                                                     .clock = parts_.clock,
                                                                     .observer = *this});
  searches_[job] = search;
  search->Start([this, job](const absl::Status& status) { OnSearchEnd(job, status); });
}

void Coordinator::OnSearchEnd(const std::string& job, const absl::Status& status) {
  // From now on it can do nothing. It is dropped, but not from within its own call.
  loop_.Post([ended = std::move(searches_.extract(job).mapped())] {});
  if (status.ok()) return;
  if (!search::IsPassing(status)) {
    Log(LogLevel::kError,
        "search stopped, it resumes when the job is cancelled or the coordinator starts again",
        {{"job", job}, {"error", status}});
    return;
  }
  // The store was away while it read; another search goes on from what is recorded.
  Log(LogLevel::kWarning, "search waits for the store", {{"job", job}, {"error", status}});
  loop_.PostAfter(options_.search.max_backoff, [this, job] {
    if (!searches_.contains(job)) StartSearch(job);
  });
}

absl::Status Coordinator::CheckLoop() const {
  const absl::Duration age = absl::Nanoseconds(absl::GetCurrentTimeNanos() - last_tick_);
  if (age < options_.tick + kMaxLag) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "has not turned for ", absl::FormatDuration(absl::Trunc(age, absl::Seconds(1)))));
}

void Coordinator::ShowJobs() {
  // All states from the start, so that a sum over them is never of nothing.
  std::map<v1::Job::State, int> counts = {{v1::Job::STATE_PENDING, 0},
                                          {v1::Job::STATE_RUNNING, 0},
                                          {v1::Job::STATE_CANCELLING, 0},
                                          {v1::Job::STATE_PAUSED, 0}};
  for (const auto& [name, search] : searches_) ++counts[search->state()];
  std::map<std::string, int> jobs;
  for (const auto& [state, count] : counts) {
    jobs[base::EnumWord(v1::Job::State_Name(state), "STATE_")] = count;
  }
  parts_.metrics.ShowJobs(jobs);
}

void Coordinator::ShowQuotas() {
  const absl::Time now = absl::Now();
  if (now < next_quotas_) return;
  next_quotas_ = now + kQuotasShownEvery;
  const auto quotas = parts_.store.ListQuotas("");
  // What cannot be read now is shown later.
  if (quotas.ok()) parts_.metrics.ShowQuotas(*quotas);
}

void Coordinator::Tick() {
  const int64_t now = absl::GetCurrentTimeNanos();
  const int64_t last = last_tick_.exchange(now);
  parts_.metrics.ObserveLag(
      std::max(absl::Nanoseconds(now - last) - options_.tick, absl::ZeroDuration()));
  leases_->Tick();
  retention_.Tick();
  ShowQuotas();
  // Scrapes are seconds apart, and jobs may be many.
  if (now / kShownEvery != last / kShownEvery || is_first_tick_) ShowJobs();
  is_first_tick_ = false;
  loop_.PostAfter(options_.tick, [this] { Tick(); });
}

void Coordinator::OnEvents(const std::string& job) {
  if (has_events_sent_) return;
  parts_.store.AfterFlush([this, job] { parts_.feed.Notify(job); });
}

void Coordinator::OnDecision(const std::string& policy, v1::Action::Type type) {
  parts_.metrics.CountDecision(policy, type);
}

void Coordinator::OnFallback(const std::string& cause) { parts_.metrics.CountFallback(cause); }

void Coordinator::OnCacheLookup(bool is_hit) {
  parts_.metrics.CountCacheLookup("evaluation", is_hit);
}

void Coordinator::OnCandidate(const v1::Job& job, const v1::Candidate& candidate) {
  parts_.metrics.CountCandidate(job, candidate);
}

void Coordinator::OnEnd(const v1::Job& job, const v1::Candidate* best) {
  parts_.metrics.CountEnd(job, best);
  Log(LogLevel::kInfo, "job ended",
      {{"job", job.name()},
       {"reason", base::EnumWord(v1::Job::EndReason_Name(job.end_reason()), "END_REASON_")},
       {"trials", job.budget_use().trials()}});
}

}  // namespace mtmc::coordinator

// SPDX-License-Identifier: Apache-2.0
#include "server/search/journal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/executor.h"
#include "common/base/log.h"
#include "common/base/string_view.h"
#include "common/rpc/error.h"
#include "google/protobuf/util/time_util.h"
#include "server/search/known_step.h"
#include "server/search/record_key.h"
#include "server/search/tuned_records.h"
#include "server/store/job_store.h"

namespace mtmc::search {
namespace {

using boost::asio::awaitable;
using google::protobuf::util::TimeUtil;

absl::StatusOr<Lineage> ReadLineage(store::JobStore& store, const std::string& job) {
  const auto events = store.ReadLineage(job);
  if (!events.ok()) return events.status();
  Lineage lineage;
  for (const v1::JobEvent& event : *events) lineage.Apply(event);
  return lineage;
}

}  // namespace

absl::Status AlreadyEnding(const std::string& job) {
  return rpc::MakeError(absl::StatusCode::kFailedPrecondition, "JOB_CANCELLING",
                        absl::StrCat("job ", job, " is ending; it cannot be paused any more"),
                        {{"job", job}});
}

bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || (absl::IsResourceExhausted(status) &&
                                         rpc::ErrorReason(status) != "TOKEN_BUDGET_EXHAUSTED" &&
                                         rpc::ErrorReason(status) != "QUOTA_EXCEEDED");
}

bool HasEnded(v1::Job::State state) {
  return state == v1::Job::STATE_SUCCEEDED || state == v1::Job::STATE_FAILED ||
         state == v1::Job::STATE_CANCELLED;
}

Journal::Journal(std::string job, const Search::Options& options, const SearchTools& tools,
                 Interruption& interruption)
    : name_(std::move(job)),
      options_(options),
      tools_(tools),
      interruption_(interruption),
      wall_time_(tools.clock) {}

Journal::~Journal() { DropGraph(); }

const SharedGraph& Journal::graph() {
  v1::Inspection& inspection = *job_.mutable_inspection();
  if (graph_ == nullptr) {
    // Also of an inspection without one.
    inspection.mutable_graph();
    graph_ = SharedGraph(inspection.release_graph());
    LendGraph(graph_, inspection);
  }
  return graph_;
}

void Journal::DropGraph() {
  if (graph_ != nullptr) TakeBackGraph(*job_.mutable_inspection());
  graph_ = nullptr;
}

awaitable<absl::Status> Journal::Load() {
  // What was committed a moment ago can be read then, without the loop waiting for it.
  Interruption none;
  co_await Await<bool>(tools_.loop, none, [this](Done<bool> done) {
    tools_.store.AfterFlush([done = std::move(done)] { done(true); });
  });
  // Only this search changes it. Off the loop: a restart reads that of every open job.
  absl::StatusOr<Lineage> lineage =
      co_await Await<Lineage>(tools_.loop, none, [this](Done<Lineage> done) {
        const absl::Status status = tools_.readers.Submit(
            [&store = tools_.store, job = name_, done] { done(ReadLineage(store, job)); });
        if (!status.ok()) done(status);
      });
  absl::StatusOr<v1::Job> job = tools_.store.LookupJob(name_);
  while (!job.ok() && IsPassing(job.status())) {
    co_await WaitFor(tools_.loop, interruption_, options_.max_backoff);
    job = tools_.store.LookupJob(name_);
  }
  if (!job.ok()) co_return job.status();
  if (!lineage.ok()) co_return lineage.status();
  Take(*std::move(job));
  is_loaded_ = true;
  may_hold_ = true;
  lineage_ = *std::move(lineage);
  co_return absl::OkStatus();
}

google::protobuf::Timestamp Journal::Now() const {
  return TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(tools_.clock.Now()));
}

void Journal::NoteStart() {
  *job_.mutable_start_time() = Now();
  wall_time_.Run();
}

awaitable<absl::Status> Journal::RecordJob() {
  co_return co_await Save(JobWrite(job_), interruption_);
}

awaitable<absl::Status> Journal::RecordInspection(const std::string& key) {
  UpdateWallTime();
  store::Write write = JobWrite(job_);
  write.inspection_key = key;
  write.inspection = {.key = key, .inspection = job_.inspection()};
  // The one event that carries the graph.
  *write.events.front().mutable_job()->mutable_inspection() = job_.inspection();
  for (const std::string& probe : job_.inspection().passing_probes()) {
    write.events.push_back(
        NoticeEvent(absl::StrCat("the problem is degenerate: the probe `", probe,
                                 "` passes verification, so that a verified candidate proves "
                                 "little")));
  }
  co_return co_await Save(std::move(write), interruption_);
}

awaitable<absl::Status> Journal::RecordCandidate(v1::Candidate candidate,
                                                 const std::vector<std::string>& notices) {
  UpdateWallTime();
  store::Write write{.job_name = name_};
  v1::Candidate kept = Lineage::Kept(candidate);
  AddCandidate(std::move(candidate), write);
  AddJob(job_, write);
  for (const std::string& notice : notices) write.events.push_back(NoticeEvent(notice));
  AddUse(write);
  const absl::Status status = co_await Save(std::move(write), interruption_);
  if (status.ok()) {
    NoteCounted();
    may_hold_ = false;
    const int trial = kept.trial();
    const auto at = static_cast<size_t>(trial);
    const bool is_confirmation =
        at < lineage_.candidates.size() && IsFinished(lineage_.candidates[at]);
    lineage_.Put(std::move(kept));
    const v1::Candidate& recorded = lineage_.candidates[at];
    const bool is_trial = !IsKnownStep(lineage_, trial);
    if (IsFinished(recorded) && is_trial && !is_confirmation) {
      tools_.observer.OnCandidate(job_, recorded);
    }
  }
  co_return status;
}

awaitable<absl::Status> Journal::RecordStop(const v1::Decision& decision,
                                            const std::vector<std::string>& notices) {
  store::Write write{.job_name = name_};
  v1::JobEvent event = NewEvent();
  *event.mutable_decision() = decision;
  write.events.push_back(event);
  for (const std::string& notice : notices) write.events.push_back(NoticeEvent(notice));
  const absl::Status status = co_await Save(std::move(write), interruption_);
  if (status.ok()) lineage_.Apply(event);
  co_return status;
}

awaitable<absl::Status> Journal::RecordEnd() {
  store::Write write{.job_name = name_};
  if (!lineage_.candidates.empty() && !IsFinished(lineage_.candidates.back())) {
    v1::Candidate candidate = lineage_.candidates.back();
    candidate.set_state(v1::Candidate::STATE_CANCELLED);
    *candidate.mutable_end_time() = Now();
    AddCandidate(candidate, write);
  }
  *job_.mutable_end_time() = Now();
  UpdateWallTime();
  AddJob(job_, write);
  AddRecords(write);
  AddUse(write);
  write.quota.push_back({.resource = store::QuotaResource::kOpenJobs, .reserved = 0});
  Interruption none;
  co_return co_await Save(std::move(write), none);
}

awaitable<void> Journal::RecordNotice(const std::string& text) {
  store::Write write{.job_name = name_};
  write.events.push_back(NoticeEvent(text));
  // A notice that cannot be recorded is not worth an end; the next write meets
  // the same store.
  const absl::Status status = co_await Save(std::move(write), interruption_);
  status.IgnoreError();
}

void Journal::RecordWaiting(const std::string& why) {
  store::Write write{.job_name = name_};
  write.events.push_back(NoticeEvent(absl::StrCat("the job waits for a worker: ", why)));
  // A notice that cannot be recorded is not worth a wait.
  Commit(std::move(write)).IgnoreError();
}

void Journal::RecordNoticeNow(const std::string& text) {
  store::Write write{.job_name = name_};
  write.events.push_back(NoticeEvent(text));
  Commit(write).IgnoreError();
}

void Journal::ReleaseReservations() {
  store::Write write{.job_name = name_};
  write.quota = {{.resource = store::QuotaResource::kDeviceTime, .reserved = 0},
                 {.resource = store::QuotaResource::kTokens, .reserved = 0}};
  // What is still held is given back with the job's next record.
  Commit(write).IgnoreError();
}

void Journal::RecordRunning(int trial) {
  v1::Candidate& candidate = lineage_.candidates[static_cast<size_t>(trial)];
  if (candidate.state() != v1::Candidate::STATE_PENDING) return;
  candidate.set_state(v1::Candidate::STATE_RUNNING);
  store::Write write{.job_name = name_};
  AddCandidate(candidate, write);
  // What is done next for the candidate is recorded again.
  Commit(std::move(write)).IgnoreError();
}

absl::StatusOr<v1::Job> Journal::RecordCancelling() {
  if (!is_loaded_) {
    absl::StatusOr<v1::Job> job = tools_.store.LookupJob(name_);
    if (!job.ok() || HasEnded(*job)) return job;
    Take(*std::move(job));
  }
  if (HasEnded(job_) || job_.state() == v1::Job::STATE_CANCELLING) return job_;
  v1::Job cancelling = job_;
  cancelling.set_state(v1::Job::STATE_CANCELLING);
  // What was used since the last record counts with the next one, which may wait for the store.
  *cancelling.mutable_budget_use() = counted_;
  *cancelling.mutable_budget_use()->mutable_wall_time() = wall_time_.ToProto();
  const absl::Status status = Commit(JobWrite(cancelling));
  if (!status.ok()) return status;
  job_.set_state(v1::Job::STATE_CANCELLING);
  return cancelling;
}

absl::StatusOr<v1::Job> Journal::RecordPaused() {
  absl::StatusOr<v1::Job> job = tools_.store.LookupJob(name_);
  if (!job.ok() || HasEnded(*job)) return job;
  // Its last record may wait for the store.
  if (job->state() == v1::Job::STATE_CANCELLING || HasEnded(job_)) return AlreadyEnding(name_);
  if (job->state() != v1::Job::STATE_PAUSED) {
    job->set_state(v1::Job::STATE_PAUSED);
    if (is_loaded_ && job->has_start_time()) {
      *job->mutable_budget_use()->mutable_wall_time() = wall_time_.ToProto();
    }
    const absl::Status status = Commit(JobWrite(*job));
    if (!status.ok()) return status;
  }
  // Also when the answer to an earlier record was lost.
  SetState(v1::Job::STATE_PAUSED);
  return job;
}

absl::StatusOr<v1::Job> Journal::RecordResumed() {
  absl::StatusOr<v1::Job> job = tools_.store.LookupJob(name_);
  if (!job.ok()) return job;
  if (job->state() == v1::Job::STATE_PAUSED) {
    job->set_state(job->has_start_time() ? v1::Job::STATE_RUNNING : v1::Job::STATE_PENDING);
    const absl::Status status = Commit(JobWrite(*job));
    if (!status.ok()) return status;
  }
  if (is_paused()) SetState(job->state());
  return job;
}

// Of the job in hand, which may have changes that are not recorded yet.
void Journal::SetState(v1::Job::State state) {
  if (!is_loaded_) return;
  job_.set_state(state);
  if (!job_.has_start_time()) return;
  if (state == v1::Job::STATE_PAUSED) wall_time_.Stop();
  if (state != v1::Job::STATE_PAUSED) wall_time_.Run();
  // What is recorded next is no less than what the pause has recorded.
  UpdateWallTime();
}

awaitable<absl::Status> Journal::Save(store::Write write, Interruption& interruption) {
  absl::Duration backoff = options_.min_backoff;
  while (true) {
    const absl::Status status = Commit(write);
    if (status.ok() || !IsPassing(status)) co_return status;
    if (interruption.is_set()) co_return absl::CancelledError("interrupted");
    if (backoff == options_.min_backoff) {
      base::Log(base::LogLevel::kWarning, "a job waits for the store",
                {{"job", name_},
                 {"reason", rpc::ErrorReason(status)},
                 {"message", base::ToStd(status.message())}});
    }
    co_await WaitFor(tools_.loop, interruption, backoff);
    backoff = std::min(2 * backoff, options_.max_backoff);
    // It may have been paused, resumed or cancelled meanwhile.
    if (write.job) write.job->set_state(job_.state());
    for (v1::JobEvent& event : write.events) {
      if (event.has_job()) event.mutable_job()->set_state(job_.state());
    }
  }
}

// Takes `write` if it returns OK.
absl::Status Journal::Commit(store::Write& write) {
  const absl::Status status = tools_.store.CommitTaking(write);
  if (status.ok()) tools_.observer.OnEvents(name_);
  return status;
}

v1::JobEvent Journal::NewEvent() const {
  v1::JobEvent event;
  *event.mutable_time() = Now();
  return event;
}

v1::JobEvent Journal::NoticeEvent(const std::string& text) const {
  v1::JobEvent event = NewEvent();
  event.set_notice(text);
  return event;
}

v1::JobEvent Journal::JobEvent(const v1::Job& job) const {
  v1::JobEvent event = NewEvent();
  *event.mutable_job() = job;
  return event;
}

// The job without its graph, which only one event carries.
store::Write Journal::JobWrite(v1::Job& job) const {
  store::Write write{.job_name = name_};
  AddJob(job, write);
  return write;
}

void Journal::AddJob(v1::Job& job, store::Write& write) const {
  // Put aside, for a graph may be large.
  v1::Inspection* inspection = job.release_inspection();
  write.job = job;
  job.set_allocated_inspection(inspection);
  write.events.push_back(JobEvent(*write.job));
}

void Journal::AddCandidate(v1::Candidate candidate, store::Write& write) const {
  *write.events.emplace_back(NewEvent()).mutable_candidate() = std::move(candidate);
}

void Journal::AddRecords(store::Write& write) const {
  if (job_.search().omit_records()) return;
  write.refuted = RefutedRecords(lineage_);
  for (v1::TunedRecord& record : LearnRecords(job_, lineage_)) {
    *record.mutable_update_time() = Now();
    const std::string anchor = RecordAnchor(record);
    write.learned.push_back({.record = std::move(record), .anchor = anchor});
  }
}

// What was used since the last record counts with this one, which gives back the rest of what was
// reserved.
void Journal::AddUse(store::Write& write) const {
  const auto add = [&](store::QuotaResource resource, int64_t used) {
    if (used == 0 && !may_hold_) return;
    store::QuotaChange& change = write.quota.emplace_back();
    change.resource = resource;
    change.used = std::max<int64_t>(used, 0);
    if (may_hold_) change.reserved = 0;
  };
  const v1::BudgetUse& use = job_.budget_use();
  add(store::QuotaResource::kDeviceTime,
      TimeUtil::DurationToMicroseconds(use.device_time()) -
          TimeUtil::DurationToMicroseconds(counted_.device_time()));
  add(store::QuotaResource::kTokens, use.tokens() - counted_.tokens());
}

// As the store has it: what it has used is counted.
void Journal::Take(v1::Job job) {
  DropGraph();
  job_ = std::move(job);
  wall_time_.Load(job_);
  NoteCounted();
}

void Journal::NoteCounted() { counted_ = job_.budget_use(); }

void Journal::UpdateWallTime() {
  if (!job_.has_start_time()) return;
  *job_.mutable_budget_use()->mutable_wall_time() = wall_time_.ToProto();
}

}  // namespace mtmc::search

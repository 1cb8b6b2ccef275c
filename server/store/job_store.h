// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/evaluation.pb.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/problem.pb.h"
#include "mtmc/v1/record.pb.h"
#include "mtmc/v1/worker.pb.h"
#include "server/store/quota.h"

namespace mtmc::store {

// The first evaluation that finished with a fingerprint, or the first with its second
// session, else with a profile, and the candidate it was made for.
struct EvaluationRecord {
  std::string fingerprint;
  std::string candidate;
  v1::Evaluation evaluation;

  // One of a higher rank takes the place of one with the same fingerprint.
  int rank() const {
    if (!evaluation.skipped_confirmation()) return 2;
    return evaluation.has_profile() ? 1 : 0;
  }
};

// What is known of one problem on one kind of device.
struct InspectionRecord {
  std::string key;
  v1::Inspection inspection;
};

// One grant of a piece of work to a worker.
struct LeaseRecord {
  std::string id;
  // Key of the work: a fingerprint or an inspection key.
  std::string work;
  // Resource names.
  std::string job;
  std::string candidate;
  std::string worker;
  // Process of that worker.
  std::string instance;
  // Who that worker is to the guard; empty where nobody is asked.
  std::string identity{};
  // Grants of the same work that were lost so far, this one included once it is.
  int losses = 0;
  // Grants of the same work that ended in a crash of the runner so far.
  int crashes = 0;
  // No worker works on it any more; a late result is still welcome.
  bool is_lost = false;
  // Its worker has not begun it: it is to follow the one in hand.
  bool is_ahead = false;
};

struct WorkerRecord {
  v1::Worker worker;
  bool is_draining = false;
  // Who it is to the guard; empty where nobody is asked.
  std::string identity{};
};

// What a search learned, and what it is looked up by.
struct LearnedRecord {
  v1::TunedRecord record;
  std::string anchor;
};

// Changes that become visible together or not at all. Within one Write all of
// jobs and events belong to the job `job_name`.
struct Write {
  // When not 0: refused with UNAVAILABLE and reason NOT_OWNER unless it is the epoch of
  // the store's owner (owner_store.h).
  int64_t epoch = 0;
  std::string job_name;
  // Inserted; its name must be free. `request_id`, when not empty, must be new
  // within the project.
  std::optional<v1::Job> new_job;
  std::string request_id;
  // Replaces the record. `inspection` within is ignored: it is named by
  // `inspection_key` and shown by LookupJob.
  std::optional<v1::Job> job;
  // When not empty, the inspection of the job from now on.
  std::string inspection_key;
  // Appended in order; the store sets `sequence`. A candidate in one is its record from now on.
  std::vector<v1::JobEvent> events;
  // Inserted unless the key exists: the first result stays, unless it is superseded.
  std::optional<EvaluationRecord> evaluation;
  std::optional<InspectionRecord> inspection;
  // Inserted or replaced, by id.
  std::vector<LeaseRecord> leases;
  // Every lease of this work is removed, after `leases` was applied.
  std::string finished_work;
  // Inserted or replaced, by name.
  std::vector<WorkerRecord> workers;
  // Names of workers that are removed.
  std::vector<std::string> forgotten_workers;
  // Inserted, or replace slower ones of the same name.
  std::vector<LearnedRecord> learned;
  // Names of records that are removed, before `learned` is applied.
  std::vector<std::string> refuted;
  // Sequences of events that the log of an ended job goes on without (FindCompactions).
  std::optional<std::vector<int64_t>> superseded;
  // The job is removed with its candidates, its events, the evaluations that were made
  // for it, and its inspection unless another job has the same. Nothing else of the job
  // is in such a Write.
  bool is_job_deleted = false;
  // What the job reserves, uses and gives back of its project's quota.
  std::vector<QuotaChange> quota;
  // Limits of projects, applied before `quota`.
  std::vector<QuotaLimit> limits;
};

// Whether a Write changes what is recorded of a job that is there: it names one then.
bool ChangesJob(const Write& write);

// An order of jobs. Those without the value come last; equal ones, newest first.
struct JobOrder {
  enum class Field { kCreateTime, kEndTime, kBestSpeedup };

  Field field = Field::kCreateTime;
  bool is_descending = true;

  bool operator==(const JobOrder&) const = default;
};

struct JobQuery {
  // `projects/{project}`; empty means all projects.
  std::string project;
  // Empty keeps all states.
  std::vector<v1::Job::State> states;
  // When not empty, only the job that was created by this request.
  std::string request_id;
  JobOrder order;
  int page_size = 50;
  std::string page_token;
};

struct JobPage {
  std::vector<v1::Job> jobs;
  std::string next_page_token;
};

struct CandidateQuery {
  std::string job;
  int page_size = 50;
  std::string page_token;
};

struct CandidatePage {
  std::vector<v1::Candidate> candidates;
  std::string next_page_token;
};

struct RecordQuery {
  // `projects/{project}`.
  std::string project;
  int page_size = 50;
  std::string page_token;
};

struct RecordPage {
  std::vector<v1::TunedRecord> records;
  std::string next_page_token;
};

// What an ended job's log can do without: events that tell of a candidate as it was before a
// later event of the same log.
struct Compaction {
  std::string job;
  std::vector<int64_t> superseded;
};

struct Fleet {
  std::vector<WorkerRecord> workers;
  std::vector<LeaseRecord> leases;
};

// The durable record of everything that a coordinator must know after a crash.
// Records are the messages of the wire contract: a second set of structs would
// be the same fields and a converter.
//
// Every implementation keeps, and job_store_test.cc checks:
//  1. Commit applies all of a Write or nothing, also when the process is
//     killed; what it returned OK for survives.
//  2. Events of a job are numbered 1, 2, 3, ... in order of commit.
//  3. A new job with a taken name or request id is ALREADY_EXISTS; a change of
//     a job that does not exist is NOT_FOUND. Nothing is written then.
//  4. The first evaluation of a fingerprint, and inspection of a key, is final until it
//     is deleted with the job that it was made for.
//  5. Nothing of a deleted job is left but what it learned and used, and its name and
//     request id are free again.
//  6. Of the records with one name the fastest stays.
//  7. Events that are removed from a log leave all others with their numbers, and no number is
//     given twice.
//  8. What a project has used and its jobs have reserved grows beyond a limit by no
//     reservation: RESOURCE_EXHAUSTED with reason QUOTA_EXCEEDED, and nothing is written.
//     Commit says so at once, also while commits are grouped: what was committed and is
//     not written yet counts.
//
// Thread-safe. Calls block for about a millisecond (a commit waits for the
// disk, unless BeginGroups() was called). UNAVAILABLE with reason STORE_UNAVAILABLE: try again.
// RESOURCE_EXHAUSTED with reason DISK_FULL: free space and try again.
class JobStore {
 public:
  virtual ~JobStore() = default;

  virtual absl::Status Commit(const Write& write) = 0;

  // The same, and nothing can be said of `write` afterwards if it returns OK: the store may
  // have taken of it what it keeps. Otherwise it is as it was.
  virtual absl::Status CommitTaking(Write& write) { return Commit(write); }

  // With its inspection. NOT_FOUND with reason JOB_NOT_FOUND.
  virtual absl::StatusOr<v1::Job> LookupJob(const std::string& name) = 0;

  // Only its state, for those who ask often. NOT_FOUND with reason JOB_NOT_FOUND.
  virtual absl::StatusOr<v1::Job::State> LookupState(const std::string& job) = 0;

  // In the order of the query, without inspections. A job that gets another value while
  // its pages are read may be missed or come twice; all others come once.
  // INVALID_ARGUMENT with reason INVALID_PAGE_TOKEN.
  virtual absl::StatusOr<JobPage> ListJobs(const JobQuery& query) = 0;

  // NOT_FOUND with reason CANDIDATE_NOT_FOUND.
  virtual absl::StatusOr<v1::Candidate> LookupCandidate(const std::string& name) = 0;

  // By trial, oldest first. INVALID_ARGUMENT with reason INVALID_PAGE_TOKEN.
  virtual absl::StatusOr<CandidatePage> ListCandidates(const CandidateQuery& query) = 0;

  // The events of a job with `sequence` above `after`, at most `limit`.
  virtual absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(const std::string& job,
                                                               int64_t after, int limit) = 0;

  // Jobs that ended before `end` and whose logs are as they were written, those that ended first
  // first, at most `limit`. A Write with `superseded` makes the job none of them.
  virtual absl::StatusOr<std::vector<Compaction>> FindCompactions(absl::Time end, int limit) = 0;

  // What a search goes by: the newest event of each candidate of a job and its decisions, in
  // order, and perhaps others.
  virtual absl::StatusOr<std::vector<v1::JobEvent>> ReadLineage(const std::string& job);

  virtual absl::StatusOr<std::optional<EvaluationRecord>> FindEvaluation(
      const std::string& fingerprint) = 0;

  virtual absl::StatusOr<std::optional<v1::Inspection>> FindInspection(const std::string& key) = 0;

  // The records of a project, of all if it is empty, with one of these anchors; in no order.
  virtual absl::StatusOr<std::vector<v1::TunedRecord>> FindRecords(
      const std::string& project, const std::vector<std::string>& anchors) = 0;

  // NOT_FOUND with reason RECORD_NOT_FOUND.
  virtual absl::StatusOr<v1::TunedRecord> LookupRecord(const std::string& name) = 0;

  // Oldest first. INVALID_ARGUMENT with reason INVALID_PAGE_TOKEN.
  virtual absl::StatusOr<RecordPage> ListRecords(const RecordQuery& query) = 0;

  // One account of the project of `job`. Where it has no limit, `reserved` and `own` are not
  // looked up.
  virtual absl::StatusOr<QuotaAccount> FindQuota(const std::string& job,
                                                 QuotaResource resource) = 0;

  // By project, those that have a limit, have used something or have something reserved;
  // only that of `project` if it is not empty.
  virtual absl::StatusOr<std::vector<ProjectQuota>> ListQuotas(const std::string& project) = 0;

  // All workers and all leases of unfinished work.
  virtual absl::StatusOr<Fleet> ReadFleet() = 0;

  // From now on one thread commits, and Commit() does not wait for the disk: the store
  // writes what was committed in the background, as much at once as there is. The thread's
  // own reads see what it committed, and may wait for it, but for quotas, which are at hand;
  // nobody else's do, and nothing survives a crash, before it is written. So what others are told
  // of it has to wait for AfterCommit(). When it cannot be written, commits are refused with the
  // codes above until it can; what was committed is not forgotten. A store may leave this and the
  // next three as they are: then each commit is for good when it returns. Call while no other call
  // is under way that writes, and as the one that owns the jobs; the same for EndGroups().
  virtual void BeginGroups() {}

  // Writes what was committed. What cannot be written is lost as by a crash.
  virtual void EndGroups() {}

  // New events of one job with their sequences, in order. None where they have to be read, or
  // the job was deleted.
  using TellEvents = std::function<void(const std::string& job, std::vector<v1::JobEvent> events)>;

  // From the next BeginGroups() on, until EndGroups(), `tell` is called with what was committed
  // as soon as it survives, in order, so that nobody has to read back what was just written. On
  // a thread of the store's, which it may not hold up; it may not call the store. Returns false
  // where a store does not do so, and `tell` is never called.
  virtual bool SendEvents(TellEvents /*tell*/) { return false; }

  // Number of the newest commit since BeginGroups(), counted from 1.
  virtual int64_t newest_commit() { return 0; }

  // Runs `task` once commit `number` and all before it survive: at once, or later on a
  // thread of the store's, which it may not hold up. It may not call the store.
  virtual void AfterCommit(int64_t /*number*/, std::function<void()> task) { task(); }

  // The same for all that was committed so far.
  void AfterFlush(std::function<void()> task) { AfterCommit(newest_commit(), std::move(task)); }
};

}  // namespace mtmc::store

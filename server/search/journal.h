// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/timestamp.pb.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"
#include "server/search/await.h"
#include "server/search/lineage.h"
#include "server/search/search.h"
#include "server/search/shared_graph.h"
#include "server/search/wall_time.h"

namespace mtmc::store {
struct Write;
}

namespace mtmc::search {

// FAILED_PRECONDITION with reason JOB_CANCELLING: too late for a pause.
absl::Status AlreadyEnding(const std::string& job);

// One job as the store has it, its record and its lineage, and the only writer of
// both. A search changes `job()` and then records; each record is one
// transaction with its events, so that a reader of the event log sees what a
// reader of the record sees.
//
// A record waits for as long as the store is full or busy. It returns CANCELLED
// if the interruption comes first, and any other error of the store as it is.
//
// A resource; every call is made on the event loop. Private to this folder.
class Journal {
 public:
  // `interruption` and what `tools` name outlive it.
  Journal(std::string job, const Search::Options& options, const SearchTools& tools,
          Interruption& interruption);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Reads the job and its event log; again, to forget what was not recorded.
  boost::asio::awaitable<absl::Status> Load();

  const std::string& name() const { return name_; }

  // The job as recorded, with the changes that the next record will write.
  v1::Job& job() { return job_; }

  const v1::Job& job() const { return job_; }

  // That of the job's inspection, which it has.
  const SharedGraph& graph();

  // What the recorded events say; a search goes on from there.
  const Lineage& lineage() const { return lineage_; }

  google::protobuf::Timestamp Now() const;

  bool is_paused() const { return job_.state() == v1::Job::STATE_PAUSED; }

  // Of the job's budget; all of it before NoteStart().
  absl::Duration wall_time_left() const { return wall_time_.Left(job_.budget()); }

  // Since the search started, pauses left out.
  absl::Duration wall_time_used() const { return wall_time_.Elapsed(); }

  // The search starts now, as the next record will say.
  void NoteStart();

  boost::asio::awaitable<absl::Status> RecordJob();

  // The job's inspection, under the key by which other jobs find it.
  boost::asio::awaitable<absl::Status> RecordInspection(const std::string& key);

  // A candidate as it is now, together with the job.
  boost::asio::awaitable<absl::Status> RecordCandidate(v1::Candidate candidate,
                                                       const std::vector<std::string>& notices);

  // The decision to stop, which makes no candidate.
  boost::asio::awaitable<absl::Status> RecordStop(const v1::Decision& decision,
                                                  const std::vector<std::string>& notices);

  // The job's last record, with what it learned; an unfinished candidate ends as cancelled.
  // Nothing interrupts it.
  boost::asio::awaitable<absl::Status> RecordEnd();

  // Best effort: a text in the event log for whoever watches.
  boost::asio::awaitable<void> RecordNotice(const std::string& text);

  // Best effort, at once: why the job waits for a worker.
  void RecordWaiting(const std::string& why);

  // Best effort, at once: a candidate that a worker has begun is shown as running.
  void RecordRunning(int trial);

  // The job may hold something of its project's quota: the next record gives it back.
  void NoteReserved() { may_hold_ = true; }

  // Best effort, at once: a paused job holds nothing.
  void ReleaseReservations();

  // Best effort, at once.
  void RecordNoticeNow(const std::string& text);

  // At once: the job is CANCELLING, unless it has ended or is so already; with no use
  // that is not recorded yet. May come before Load(). Returns the job.
  absl::StatusOr<v1::Job> RecordCancelling();

  // At once: the job is PAUSED, with nothing else that is not recorded yet; unless it
  // is so or has ended. FAILED_PRECONDITION with reason JOB_CANCELLING when it is
  // CANCELLING, or its end is being recorded. May come before Load(). Returns the job.
  absl::StatusOr<v1::Job> RecordPaused();

  // At once: the job is no longer PAUSED, if it was. May come before Load(). Returns the
  // job.
  absl::StatusOr<v1::Job> RecordResumed();

 private:
  boost::asio::awaitable<absl::Status> Save(store::Write write, Interruption& interruption);
  absl::Status Commit(store::Write& write);

  absl::Status Commit(store::Write&& write) { return Commit(write); }

  void SetState(v1::Job::State state);

  v1::JobEvent NewEvent() const;
  v1::JobEvent NoticeEvent(const std::string& text) const;
  v1::JobEvent JobEvent(const v1::Job& job) const;
  store::Write JobWrite(v1::Job& job) const;
  void AddJob(v1::Job& job, store::Write& write) const;
  void AddCandidate(v1::Candidate candidate, store::Write& write) const;
  void AddRecords(store::Write& write) const;
  void AddUse(store::Write& write) const;
  void Take(v1::Job job);
  void DropGraph();
  void NoteCounted();
  void UpdateWallTime();

  const std::string name_;
  const Search::Options options_;
  const SearchTools tools_;
  Interruption& interruption_;
  v1::Job job_;
  // Lent to `job_`; null until it is asked for.
  SharedGraph graph_;
  bool is_loaded_ = false;
  Lineage lineage_;
  WallTime wall_time_;
  // What was counted of the job's use of device time and tokens, as of its last record.
  v1::BudgetUse counted_;
  bool may_hold_ = true;
};

}  // namespace mtmc::search

// SPDX-License-Identifier: Apache-2.0
//
// Commits of SqlJobStore that share a transaction, and with it one wait for the disk.
#include <soci/soci.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/id.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/store/sql_connection.h"
#include "server/store/sql_jobs.h"
#include "server/store/sql_quota.h"
#include "server/store/sql_statements.h"

namespace mtmc::store {
namespace {

// Names are forgotten, and read again, above some 100 MB of them.
constexpr size_t kMaxKnownJobs = 1'000'000;

bool TouchesOldJob(const Write& write) {
  return !write.new_job && (ChangesJob(write) || !write.inspection_key.empty());
}

bool TouchesQuotas(const Write& write) {
  return !write.quota.empty() || !write.limits.empty() || write.is_job_deleted;
}

bool Reserves(const Write& write) {
  return std::any_of(write.quota.begin(), write.quota.end(),
                     [](const QuotaChange& change) { return change.reserved.value_or(0) > 0; });
}

}  // namespace

void SqlJobStore::BeginGroups() {
  {
    // Others may have written meanwhile.
    absl::MutexLock lock(&write_mu_);
    writer_->marks.clear();
  }
  known_jobs_.clear();
  ledger_ = nullptr;
  queue_ = std::make_unique<WriteQueue>(
      [this](std::deque<Write>& writes) { return WriteGroup(writes); });
}

bool SqlJobStore::SendEvents(TellEvents tell) {
  tell_events_ = std::move(tell);
  return true;
}

void SqlJobStore::EndGroups() {
  group_thread_ = std::thread::id();
  ledger_ = nullptr;
  queue_.reset();
  tell_events_ = nullptr;
  absl::MutexLock lock(&write_mu_);
  group_id_.clear();
}

int64_t SqlJobStore::newest_commit() { return queue_ == nullptr ? 0 : queue_->newest(); }

void SqlJobStore::AfterCommit(int64_t number, std::function<void()> task) {
  queue_ == nullptr ? task() : queue_->After(number, std::move(task));
}

absl::Status SqlJobStore::AddToGroup(Write& write) {
  group_thread_ = std::this_thread::get_id();
  if (write.new_job) MTMC_RETURN_IF_ERROR(CheckNewJob(write));
  if (TouchesOldJob(write)) MTMC_RETURN_IF_ERROR(CheckKnownJob(write.job_name));
  MTMC_ASSIGN_OR_RETURN(const QuotaLedger::Posting posting, WeighQuotas(write));
  const std::string job = write.job_name;
  const bool is_job_deleted = write.is_job_deleted;
  MTMC_RETURN_IF_ERROR(queue_->Add(write));
  if (ledger_ != nullptr) ledger_->Post(posting);
  if (known_jobs_.size() > kMaxKnownJobs) known_jobs_.clear();
  if (is_job_deleted) {
    known_jobs_.erase(job);
  } else if (!job.empty()) {
    known_jobs_.insert(job);
  }
  return absl::OkStatus();
}

absl::StatusOr<QuotaLedger::Posting> SqlJobStore::WeighQuotas(const Write& write) {
  if (!TouchesQuotas(write)) return QuotaLedger::Posting();
  MTMC_RETURN_IF_ERROR(OpenLedger());
  return ledger_->Weigh(write);
}

absl::Status SqlJobStore::OpenLedger() {
  if (ledger_ != nullptr) return absl::OkStatus();
  MTMC_ASSIGN_OR_RETURN(QuotaLedger ledger, Read<QuotaLedger>("", [](SqlSession& session) {
                          return sql::ReadLedger(session);
                        }));
  ledger_ = std::make_unique<QuotaLedger>(std::move(ledger));
  return absl::OkStatus();
}

absl::Status SqlJobStore::CheckNewJob(const Write& write) {
  MTMC_RETURN_IF_ERROR(queue_->Settle(JobSubject(write.job_name)));
  const auto is_free = Read<bool>(RequestSubject(write.request_id), [&](SqlSession& session) {
    return absl::StatusOr<bool>(sql::IsFree(session, write.job_name, write.request_id));
  });
  if (!is_free.ok() || *is_free) return is_free.status();
  return rpc::MakeError(absl::StatusCode::kAlreadyExists, "ALREADY_EXISTS",
                        "the job's name or its request id is taken");
}

absl::Status SqlJobStore::CheckKnownJob(const std::string& name) {
  if (known_jobs_.contains(name)) return absl::OkStatus();
  const auto is_there = Read<bool>(JobSubject(name), [&](SqlSession& session) {
    return absl::StatusOr<bool>(!sql::IsFree(session, name, /*request_id=*/""));
  });
  if (!is_there.ok() || *is_there) return is_there.status();
  return rpc::MakeError(absl::StatusCode::kNotFound, "JOB_NOT_FOUND", name + " does not exist",
                        {{"name", name}});
}

// On the queue's thread.
absl::Status SqlJobStore::WriteGroup(std::deque<Write>& writes) {
  std::vector<Applied> applied;
  {
    absl::MutexLock lock(&write_mu_);
    // The group keeps its id until it is known to be written.
    if (group_id_.empty() && database_->CanLoseCommits()) group_id_ = base::MakeUuid4();
    absl::Status status = TryGroup(writes, applied);
    // Its connection may have died while it was idle.
    if (!status.ok() && writer_->was_lost) status = TryGroup(writes, applied);
    if (!status.ok()) {
      writer_->marks.clear();
      return status;
    }
    if (!group_id_.empty()) settled_ = {std::exchange(group_id_, "")};
  }
  if (tell_events_) Tell(writes, applied);
  return absl::OkStatus();
}

void SqlJobStore::Tell(std::deque<Write>& writes, const std::vector<Applied>& applied) const {
  for (const Applied& each : applied) {
    Write& write = writes[each.write];
    if (!each.last_event) {
      tell_events_(write.job_name, {});
      continue;
    }
    int64_t sequence = *each.last_event - static_cast<int64_t>(write.events.size());
    for (v1::JobEvent& event : write.events) event.set_sequence(++sequence);
    tell_events_(write.job_name, std::move(write.events));
  }
}

absl::Status SqlJobStore::TryGroup(const std::deque<Write>& writes, std::vector<Applied>& applied) {
  const std::string id = group_id_;
  const std::vector<std::string> settled = settled_;
  sql::JobMarks& marks = writer_->marks;
  if (marks.size() > kMaxKnownJobs) marks.clear();
  return Run(*writer_, [&](SqlSession& session) -> absl::Status {
    applied.clear();
    const auto note = [&](size_t write, std::optional<int64_t> last_event) {
      const bool is_news = !writes[write].events.empty() || writes[write].is_job_deleted;
      if (is_news) applied.push_back({.write = write, .last_event = last_event});
    };
    SqlTransaction transaction(session);
    if (!id.empty() && !sql::WriteCommitId(session, settled, id)) {
      for (size_t i = 0; i < writes.size(); ++i) note(i, std::nullopt);
      return absl::OkStatus();
    }
    int64_t epoch = 0;
    for (size_t i = 0; i < writes.size(); ++i) {
      const Write& write = writes[i];
      // It stays until the transaction ends.
      if (write.epoch != 0 && write.epoch != epoch) {
        epoch = write.epoch;
        if (epoch != sql::ReadEpoch(session, database_->RowLock())) return NotOwner();
      }
      // It was looked at when it was committed. Should it be refused all the same, for
      // somebody else has changed the database, nothing of it is written.
      const bool may_be_refused = Reserves(write);
      if (may_be_refused) session.Send("SAVEPOINT reserving");
      const absl::StatusOr<int64_t> last_event = sql::Apply(session, write, marks);
      if (may_be_refused) {
        session.Send(last_event.ok() ? "RELEASE SAVEPOINT reserving"
                                     : "ROLLBACK TO SAVEPOINT reserving");
      }
      if (!last_event.ok()) {
        marks.erase(write.job_name);
        base::Log(base::LogLevel::kError, "a commit is dropped",
                  {{"job", write.job_name}, {"error", last_event.status()}});
        continue;
      }
      note(i, *last_event);
    }
    std::set<std::string> changed;
    for (const Applied& each : applied) changed.insert(writes[each.write].job_name);
    database_->Announce(session, changed);
    session.Collect();
    transaction.Commit();
    return absl::OkStatus();
  });
}

}  // namespace mtmc::store

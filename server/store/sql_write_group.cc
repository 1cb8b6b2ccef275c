// SPDX-License-Identifier: Apache-2.0
//
// Commits of SqlJobStore that share a transaction, and with it one wait for the disk.
#include <soci/soci.h>

#include <utility>

#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "server/store/sql_connection.h"
#include "server/store/sql_statements.h"

namespace mtmc::store {
namespace {

// Between two attempts to write a group, as on a disk that is full.
constexpr absl::Duration kRetryFlush = absl::Milliseconds(200);

}  // namespace

void SqlJobStore::GroupCommits(std::function<void(absl::Duration delay)> schedule) {
  // One commit at a time may be lost with its connection and found again; not a group.
  if (database_->CanLoseCommits()) return;
  if (!schedule) Flush();
  absl::MutexLock lock(&write_mu_);
  // What could not be written is lost as by a crash: nobody has heard of it.
  if (group_.is_open) RollBack();
  group_ = {};
  group_.schedule = std::move(schedule);
  group_thread_ = std::thread::id();
}

// Whatever the database has left of the transaction.
void SqlJobStore::RollBack() {
  group_.is_open = false;
  Run(*writer_, [](soci::session& session) {
    session.rollback();
    return absl::OkStatus();
  }).IgnoreError();
}

// The transaction, with all that is in the group. Nothing is open if it fails.
absl::Status SqlJobStore::OpenGroup() {
  if (group_.is_open) return absl::OkStatus();
  const absl::Status status = Run(*writer_, [&](soci::session& session) -> absl::Status {
    session.begin();
    for (const Write& write : group_.writes) MTMC_RETURN_IF_ERROR(sql::Apply(session, write));
    return absl::OkStatus();
  });
  group_.is_open = status.ok();
  if (!status.ok()) RollBack();
  return status;
}

absl::Status SqlJobStore::Join(const Write& write) {
  group_thread_ = std::this_thread::get_id();
  MTMC_RETURN_IF_ERROR(OpenGroup());
  const absl::Status status = Run(*writer_, [&](soci::session& session) -> absl::Status {
    session << "SAVEPOINT one";
    MTMC_RETURN_IF_ERROR(sql::Apply(session, write));
    session << "RELEASE one";
    return absl::OkStatus();
  });
  if (!status.ok()) {
    // A database that is full may have ended the whole transaction by itself; then this
    // fails, and the others of the group are applied again.
    const bool is_open = Run(*writer_, [](soci::session& session) {
                           session << "ROLLBACK TO one";
                           session << "RELEASE one";
                           return absl::OkStatus();
                         }).ok();
    if (!is_open) RollBack();
    return status;
  }
  group_.writes.push_back(write);
  if (group_.writes.size() == 1) {
    group_.begin = absl::Now();
    group_.schedule(absl::ZeroDuration());
  }
  return absl::OkStatus();
}

absl::Status SqlJobStore::CommitGroup() {
  MTMC_RETURN_IF_ERROR(OpenGroup());
  const absl::Status status = Run(*writer_, [](soci::session& session) {
    session.commit();
    return absl::OkStatus();
  });
  group_.is_open = false;
  if (!status.ok()) RollBack();
  return status;
}

void SqlJobStore::Flush() {
  std::vector<std::function<void()>> tasks;
  {
    absl::MutexLock lock(&write_mu_);
    if (group_.writes.empty() && !group_.is_open) return;
    const absl::Status status = CommitGroup();
    if (!status.ok()) {
      base::Log(base::LogLevel::kWarning, "commits wait for the disk",
                {{"commits", group_.writes.size()}, {"error", status}});
      group_.schedule(kRetryFlush);
      return;
    }
    group_.writes.clear();
    tasks.swap(group_.tasks);
  }
  for (const std::function<void()>& task : tasks) task();
}

void SqlJobStore::AfterFlush(std::function<void()> task) {
  {
    absl::MutexLock lock(&write_mu_);
    if (!group_.writes.empty()) return group_.tasks.push_back(std::move(task));
  }
  task();
}

}  // namespace mtmc::store

// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/job_feed.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/executor.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/search/search.h"
#include "server/store/job_store.h"

namespace mtmc::coordinator {
namespace {

constexpr int kEventsPerRead = 64;

// Events that wait for one watcher in memory; who is further behind reads them.
constexpr size_t kMostTold = 64;

absl::Status CursorExpired(const std::string& job, int64_t cursor) {
  return rpc::MakeError(absl::StatusCode::kOutOfRange, "CURSOR_EXPIRED",
                        absl::StrCat(job, " has no event ", cursor,
                                     ": its log was compacted after the job's end, or is another "
                                     "one, from a backup or of a job of the same name; watch "
                                     "again from 0"),
                        {{"job", job}, {"cursor", absl::StrCat(cursor)}});
}

}  // namespace

struct JobFeed::Watcher {
  Watcher(std::string job_in, Sink sink_in, int64_t cursor_in)
      : job(std::move(job_in)),
        sink(std::move(sink_in)),
        cursor(cursor_in),
        is_cursor_known(cursor_in == 0) {}

  const std::string job;
  const Sink sink;
  // Only the pump that runs touches these three.
  int64_t cursor = 0;
  // That there is such an event: a client may have seen what the store has lost since.
  bool is_cursor_known = false;
  bool is_at_end = false;

  absl::Mutex mu;
  // What is to be sent: events that are at hand, in order, and perhaps others in the store.
  std::vector<v1::JobEvent> told ABSL_GUARDED_BY(mu);
  bool has_to_read ABSL_GUARDED_BY(mu) = true;
  // A pump is on its way or runs, so that at most one does.
  bool is_pumped ABSL_GUARDED_BY(mu) = false;
};

JobFeed::JobFeed(store::JobStore& store, base::Executor& executor)
    : store_(store), executor_(executor) {}

void JobFeed::Watch(const std::string& job, int64_t cursor, Sink sink) {
  auto watcher = std::make_shared<Watcher>(job, std::move(sink), cursor);
  {
    absl::MutexLock lock(&mu_);
    watchers_.emplace(job, watcher);
  }
  Schedule(watcher, {});
}

void JobFeed::Tell(const std::string& job, std::vector<v1::JobEvent> events) {
  const std::vector<std::shared_ptr<Watcher>> watchers = WatchersOf(job);
  for (size_t i = 0; i + 1 < watchers.size(); ++i) Schedule(watchers[i], events);
  if (!watchers.empty()) Schedule(watchers.back(), std::move(events));
}

void JobFeed::Notify(const std::string& job) { Tell(job, {}); }

void JobFeed::NotifyAll() {
  std::multimap<std::string, std::shared_ptr<Watcher>> watchers;
  {
    absl::MutexLock lock(&mu_);
    watchers = watchers_;
  }
  for (const auto& [job, watcher] : watchers) Schedule(watcher, {});
}

void JobFeed::Close() {
  std::multimap<std::string, std::shared_ptr<Watcher>> watchers;
  {
    absl::MutexLock lock(&mu_);
    watchers.swap(watchers_);
  }
  for (const auto& [job, watcher] : watchers) {
    watcher->sink.close(rpc::MakeError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                                       "the coordinator stops; watch again from your cursor"));
  }
}

std::vector<std::shared_ptr<JobFeed::Watcher>> JobFeed::WatchersOf(const std::string& job) {
  std::vector<std::shared_ptr<Watcher>> watchers;
  absl::MutexLock lock(&mu_);
  const auto [begin, end] = watchers_.equal_range(job);
  for (auto it = begin; it != end; ++it) watchers.push_back(it->second);
  return watchers;
}

// With no events there may be some to read.
void JobFeed::Schedule(const std::shared_ptr<Watcher>& watcher, std::vector<v1::JobEvent> events) {
  {
    absl::MutexLock lock(&watcher->mu);
    if (watcher->told.size() + events.size() > kMostTold) {
      watcher->told = {};
      events.clear();
    }
    if (events.empty()) watcher->has_to_read = true;
    for (v1::JobEvent& event : events) watcher->told.push_back(std::move(event));
    if (std::exchange(watcher->is_pumped, true)) return;
  }
  const absl::Status status = executor_.Submit([this, watcher] { Pump(watcher); });
  if (!status.ok()) End(watcher, status);
}

void JobFeed::Pump(const std::shared_ptr<Watcher>& watcher) {
  while (true) {
    std::vector<v1::JobEvent> told;
    bool has_to_read = false;
    {
      absl::MutexLock lock(&watcher->mu);
      told.swap(watcher->told);
      has_to_read = std::exchange(watcher->has_to_read, false);
      if (told.empty() && !has_to_read) {
        watcher->is_pumped = false;
        return;
      }
    }
    absl::Status status = has_to_read ? SendNew(*watcher) : absl::OkStatus();
    if (status.ok()) status = SendTold(*watcher, std::move(told));
    if (!status.ok() || watcher->is_at_end) return End(watcher, status);
  }
}

absl::Status JobFeed::SendTold(Watcher& watcher, std::vector<v1::JobEvent> events) {
  for (v1::JobEvent& event : events) {
    // Read before it was told of.
    if (event.sequence() <= watcher.cursor) continue;
    // Told of while there was no watch yet, or too much at once.
    if (event.sequence() > watcher.cursor + 1) return SendNew(watcher);
    MTMC_RETURN_IF_ERROR(Send(watcher, std::move(event)));
  }
  return absl::OkStatus();
}

absl::Status JobFeed::Send(Watcher& watcher, v1::JobEvent event) {
  const int64_t sequence = event.sequence();
  // The job's end is an event, too.
  const bool is_end = event.has_job() && search::HasEnded(event.job());
  MTMC_RETURN_IF_ERROR(watcher.sink.write(std::move(event)));
  watcher.cursor = sequence;
  watcher.is_cursor_known = true;
  if (is_end) watcher.is_at_end = true;
  return absl::OkStatus();
}

absl::Status JobFeed::CheckCursor(Watcher& watcher) {
  MTMC_ASSIGN_OR_RETURN(const auto events, store_.ReadEvents(watcher.job, watcher.cursor - 1, 1));
  if (!events.empty() && events.front().sequence() == watcher.cursor) {
    watcher.is_cursor_known = true;
    return absl::OkStatus();
  }
  // A job that is gone is told before a cursor that is.
  MTMC_RETURN_IF_ERROR(store_.LookupState(watcher.job).status());
  return CursorExpired(watcher.job, watcher.cursor);
}

absl::Status JobFeed::SendNew(Watcher& watcher) {
  if (!watcher.is_cursor_known) MTMC_RETURN_IF_ERROR(CheckCursor(watcher));
  std::vector<v1::JobEvent> events;
  const int64_t before = watcher.cursor;
  do {
    MTMC_ASSIGN_OR_RETURN(events, store_.ReadEvents(watcher.job, watcher.cursor, kEventsPerRead));
    for (v1::JobEvent& event : events) MTMC_RETURN_IF_ERROR(Send(watcher, std::move(event)));
  } while (events.size() == kEventsPerRead);
  if (watcher.is_at_end || watcher.cursor > before) return absl::OkStatus();
  MTMC_ASSIGN_OR_RETURN(const v1::Job::State state, store_.LookupState(watcher.job));
  // A cursor at the last event of a job that has ended.
  watcher.is_at_end = search::HasEnded(state) &&
                      store_.ReadEvents(watcher.job, watcher.cursor, 1).value_or(events).empty();
  return absl::OkStatus();
}

void JobFeed::End(const std::shared_ptr<Watcher>& watcher, const absl::Status& status) {
  {
    absl::MutexLock lock(&mu_);
    const auto [begin, end] = watchers_.equal_range(watcher->job);
    for (auto it = begin; it != end; ++it) {
      if (it->second != watcher) continue;
      watchers_.erase(it);
      break;
    }
  }
  watcher->sink.close(status);
}

}  // namespace mtmc::coordinator

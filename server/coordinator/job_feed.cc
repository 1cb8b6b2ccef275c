// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/job_feed.h"

#include <atomic>
#include <utility>
#include <vector>

#include "common/base/executor.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/search/search.h"
#include "server/store/job_store.h"

namespace mtmc::coordinator {
namespace {

constexpr int kEventsPerRead = 64;

}  // namespace

struct JobFeed::Watcher {
  const std::string job;
  const Sink sink;
  // Only the pump that runs touches these two.
  int64_t cursor = 0;
  bool is_at_end = false;
  // Wake-ups that no pump has taken; a pump runs while this is above 0, so
  // that at most one does.
  std::atomic<int> wakes = 0;
};

JobFeed::JobFeed(store::JobStore& store, base::Executor& executor)
    : store_(store), executor_(executor) {}

void JobFeed::Watch(const std::string& job, int64_t cursor, Sink sink) {
  auto watcher =
      std::shared_ptr<Watcher>(new Watcher{.job = job, .sink = std::move(sink), .cursor = cursor});
  {
    absl::MutexLock lock(&mu_);
    watchers_.emplace(job, watcher);
  }
  Schedule(watcher);
}

void JobFeed::Notify(const std::string& job) {
  std::vector<std::shared_ptr<Watcher>> watchers;
  {
    absl::MutexLock lock(&mu_);
    const auto [begin, end] = watchers_.equal_range(job);
    for (auto it = begin; it != end; ++it) watchers.push_back(it->second);
  }
  for (const auto& watcher : watchers) Schedule(watcher);
}

void JobFeed::NotifyAll() {
  std::multimap<std::string, std::shared_ptr<Watcher>> watchers;
  {
    absl::MutexLock lock(&mu_);
    watchers = watchers_;
  }
  for (const auto& [job, watcher] : watchers) Schedule(watcher);
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

void JobFeed::Schedule(const std::shared_ptr<Watcher>& watcher) {
  if (watcher->wakes.fetch_add(1) > 0) return;
  const absl::Status status = executor_.Submit([this, watcher] { Pump(watcher); });
  if (!status.ok()) End(watcher, status);
}

void JobFeed::Pump(const std::shared_ptr<Watcher>& watcher) {
  while (true) {
    const int wakes = watcher->wakes.load();
    const absl::Status status = SendNew(*watcher);
    if (!status.ok() || watcher->is_at_end) return End(watcher, status);
    // Wake-ups that came in while reading ask for another look.
    if (watcher->wakes.fetch_sub(wakes) == wakes) return;
  }
}

absl::Status JobFeed::SendNew(Watcher& watcher) {
  std::vector<v1::JobEvent> events;
  const int64_t before = watcher.cursor;
  do {
    MTMC_ASSIGN_OR_RETURN(events, store_.ReadEvents(watcher.job, watcher.cursor, kEventsPerRead));
    for (v1::JobEvent& event : events) {
      const int64_t sequence = event.sequence();
      const bool is_end = event.has_job() && search::HasEnded(event.job());
      MTMC_RETURN_IF_ERROR(watcher.sink.write(std::move(event)));
      watcher.cursor = sequence;
      if (is_end) watcher.is_at_end = true;
    }
  } while (events.size() == kEventsPerRead);
  // The job's end is an event, too.
  if (watcher.is_at_end || watcher.cursor > before) return absl::OkStatus();
  // A cursor at or behind the last event of a job that has ended.
  MTMC_ASSIGN_OR_RETURN(const v1::Job::State state, store_.LookupState(watcher.job));
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

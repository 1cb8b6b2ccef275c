// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/job_feed.h"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/executor.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/coordinator/fake_parts.h"
#include "server/store/fake_job_store.h"
#include "server/store/test_records.h"

namespace mtmc::coordinator {
namespace {

using store::kJob;
using store::MakeJob;
using store::Notice;
using testing::IsOk;
using testing::StatusIs;

// What a watcher has been sent.
struct Sent {
  std::vector<std::string> texts;
  std::optional<absl::Status> end;
};

// A feed over a store in memory, whose reads can be made to fail.
struct Feed {
  store::FakeJobStore memory;
  CrashingStore store{memory};
  base::Executor executor{{.name = "feed", .num_threads = 1}};
  JobFeed feed{store, executor};

  Feed() { REQUIRE_THAT(memory.Commit({.job_name = kJob, .new_job = MakeJob(kJob)}), IsOk()); }

  // With its number.
  v1::JobEvent Record(v1::JobEvent event) {
    REQUIRE_THAT(memory.Commit({.job_name = kJob, .events = {event}}), IsOk());
    return memory.ReadEvents(kJob, 0, 1000)->back();
  }

  v1::JobEvent Record(const std::string& text) { return Record(Notice(text)); }

  std::shared_ptr<Sent> Watch(int64_t cursor = 0) {
    auto sent = std::make_shared<Sent>();
    feed.Watch(kJob, cursor,
               {.write =
                    [sent](const v1::JobEvent& event) {
                      sent->texts.push_back(std::to_string(event.sequence()) + event.notice());
                      return absl::OkStatus();
                    },
                .close = [sent](const absl::Status& status) { sent->end = status; }});
    Settle();
    return sent;
  }

  // Until the one thread has come to a task behind all others.
  void Settle() {
    absl::Notification is_done;
    REQUIRE_THAT(executor.Submit([&is_done] { is_done.Notify(); }), IsOk());
    is_done.WaitForNotification();
  }
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("A watcher is sent what was there and what it is told of, each once", "[coordinator]") {
  Feed feed;
  feed.Record("a");
  const auto sent = feed.Watch();
  const v1::JobEvent b = feed.Record("b");
  const v1::JobEvent c = feed.Record("c");
  feed.feed.Tell(kJob, {b});
  feed.feed.Tell(kJob, {c});
  // Told of again, by whoever has read it.
  feed.feed.Tell(kJob, {b});
  feed.feed.Notify(kJob);
  feed.Settle();

  CHECK(sent->texts == Texts{"1a", "2b", "3c"});
}

TEST_CASE("A watcher is told that the log has lost what it saw", "[coordinator]") {
  Feed feed;
  feed.Record("a");
  feed.Record("b");

  const auto at_end = feed.Watch(2);
  const auto beyond = feed.Watch(3);

  CHECK_FALSE(at_end->end);
  REQUIRE(beyond->end);
  CHECK_THAT(*beyond->end, StatusIs(absl::StatusCode::kOutOfRange, "has no event 3"));
  CHECK(rpc::ErrorReason(*beyond->end) == "CURSOR_EXPIRED");
  feed.feed.Tell(kJob, {feed.Record("c")});
  feed.Settle();
  CHECK(at_end->texts == Texts{"3c"});
}

TEST_CASE("A watcher whose event was compacted away is told so", "[coordinator]") {
  Feed feed;
  for (const char* text : {"a", "b", "c"}) feed.Record(text);
  REQUIRE_THAT(feed.memory.Commit({.job_name = kJob, .superseded = {{2}}}), IsOk());

  const auto behind = feed.Watch(1);
  const auto gone = feed.Watch(2);

  CHECK(behind->texts == Texts{"3c"});
  CHECK_FALSE(behind->end);
  REQUIRE(gone->end);
  CHECK(rpc::ErrorReason(*gone->end) == "CURSOR_EXPIRED");
  CHECK(gone->texts.empty());
}

TEST_CASE("An event that a watcher is told of is not read", "[coordinator]") {
  Feed feed;
  const auto sent = feed.Watch();
  const v1::JobEvent a = feed.Record("a");
  // Reads fail from now on.
  feed.store.CrashAt(1, /*is_committed=*/false);
  CHECK_FALSE(feed.store.Commit({}).ok());
  feed.feed.Tell(kJob, {a});
  feed.Settle();

  CHECK(sent->texts == Texts{"1a"});
  CHECK_FALSE(sent->end);
}

TEST_CASE("A watcher reads what is missing between two events", "[coordinator]") {
  Feed feed;
  const auto sent = feed.Watch();
  feed.Record("a");
  const v1::JobEvent b = feed.Record("b");
  feed.feed.Tell(kJob, {b});
  feed.Settle();

  CHECK(sent->texts == Texts{"1a", "2b"});
}

TEST_CASE("A watcher that is told of more than is kept for it reads the rest", "[coordinator]") {
  Feed feed;
  const auto sent = feed.Watch();
  std::vector<v1::JobEvent> events;
  for (int i = 0; i < 200; ++i) events.push_back(feed.Record("x"));
  feed.feed.Tell(kJob, events);
  feed.Settle();

  CHECK(sent->texts.size() == 200);
}

TEST_CASE("A watcher with a later cursor is not sent what comes before it", "[coordinator]") {
  Feed feed;
  const v1::JobEvent a = feed.Record("a");
  const v1::JobEvent b = feed.Record("b");
  const auto sent = feed.Watch(2);
  // Told of late, as by another thread.
  for (const v1::JobEvent& event : {a, b, feed.Record("c")}) feed.feed.Tell(kJob, {event});
  feed.Settle();

  CHECK(sent->texts == Texts{"3c"});
}

TEST_CASE("A watch ends with the event that ends its job, told of or read", "[coordinator]") {
  Feed feed;
  const bool is_told = GENERATE(true, false);
  const auto sent = feed.Watch();
  v1::JobEvent end;
  *end.mutable_job() = MakeJob(kJob);
  end.mutable_job()->set_state(v1::Job::STATE_SUCCEEDED);
  end = feed.Record(end);
  is_told ? feed.feed.Tell(kJob, {end}) : feed.feed.Notify(kJob);
  feed.Settle();

  REQUIRE(sent->end);
  CHECK_THAT(*sent->end, IsOk());
  CHECK(sent->texts == Texts{"1"});
}

TEST_CASE("A watch ends when its job is deleted", "[coordinator]") {
  Feed feed;
  const auto sent = feed.Watch();
  REQUIRE_THAT(feed.memory.Commit({.job_name = kJob, .is_job_deleted = true}), IsOk());
  feed.feed.Tell(kJob, {});
  feed.Settle();

  REQUIRE(sent->end);
  CHECK_THAT(*sent->end, StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace mtmc::coordinator

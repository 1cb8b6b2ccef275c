// SPDX-License-Identifier: Apache-2.0
#include "policy/service/lm_policy.h"

#include <atomic>
#include <catch2/catch.hpp>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "policy/model/fake_action_scorer.h"
#include "policy/service/batcher.h"

namespace mtmc::policy {
namespace {

// Long enough that a batch is due because it is full, never because it is late.
constexpr absl::Duration kNeverLate = absl::Hours(1);

// A scorer whose first call waits until it is told to go on.
class BlockingScorer final : public ActionScorer {
 public:
  std::vector<Result> Score(std::span<const ScoreRequest> requests) override {
    if (!has_started.HasBeenNotified()) {
      has_started.Notify();
      may_go_on.WaitForNotification();
    }
    return fake.Score(requests);
  }

  std::string model_digest() const override { return "digest"; }

  std::string description() const override { return "blocking"; }

  FakeActionScorer fake;
  absl::Notification has_started;
  absl::Notification may_go_on;
};

Query MakeQuery(std::vector<std::string> texts) {
  Query query;
  for (std::string& text : texts) {
    query.actions.push_back({.type = ActionType::kFuse,
                             .kernels = {},
                             .nodes = {},
                             .arguments = {},
                             .text = std::move(text)});
  }
  return query;
}

absl::StatusOr<Distribution> Ask(Policy& policy, Query query) {
  absl::Notification is_done;
  absl::StatusOr<Distribution> answer = absl::UnknownError("no answer");
  policy.Decide(std::move(query), [&](absl::StatusOr<Distribution> result) {
    answer = std::move(result);
    is_done.Notify();
  });
  is_done.WaitForNotification();
  return answer;
}

TEST_CASE("Batcher scores requests of several callers in one pass", "[policy]") {
  FakeActionScorer scorer;
  absl::BlockingCounter answers(3);
  Batcher batcher(scorer, {.max_batch = 3, .max_delay = kNeverLate, .max_queued = 8});

  for (int i = 0; i < 3; ++i) {
    const absl::Status submitted =
        batcher.Submit({"prompt", {"stop"}}, absl::InfiniteFuture(),
                       [&](ActionScorer::Result) { answers.DecrementCount(); });
    CHECK(submitted.ok());
  }
  answers.Wait();

  CHECK(scorer.batch_sizes == std::vector<size_t>{3});
}

TEST_CASE("Batcher refuses more than its queue holds", "[policy]") {
  BlockingScorer scorer;
  Batcher batcher(scorer, {.max_batch = 1, .max_delay = absl::ZeroDuration(), .max_queued = 2});
  const auto submit = [&] {
    return batcher.Submit({"prompt", {"stop"}}, absl::InfiniteFuture(),
                          [](ActionScorer::Result) {});
  };
  REQUIRE(submit().ok());
  scorer.has_started.WaitForNotification();

  CHECK(submit().ok());
  CHECK(submit().ok());
  CHECK(submit().code() == absl::StatusCode::kResourceExhausted);
  scorer.may_go_on.Notify();
}

TEST_CASE("Batcher does not score what nobody waits for any more", "[policy]") {
  FakeActionScorer scorer;
  absl::Notification is_done;
  absl::Status status;
  Batcher batcher(scorer, {.max_batch = 1, .max_delay = kNeverLate, .max_queued = 2});

  const absl::Status submitted =
      batcher.Submit({"prompt", {"stop"}}, absl::InfinitePast(), [&](ActionScorer::Result result) {
        status = result.status();
        is_done.Notify();
      });
  REQUIRE(submitted.ok());
  is_done.WaitForNotification();

  CHECK(status.code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(scorer.batch_sizes.empty());
}

TEST_CASE("Batcher answers what still waits when it ends", "[policy]") {
  FakeActionScorer scorer;
  absl::Status status;
  {
    Batcher batcher(scorer, {.max_batch = 2, .max_delay = kNeverLate, .max_queued = 2});
    const absl::Status submitted =
        batcher.Submit({"prompt", {"stop"}}, absl::InfiniteFuture(),
                       [&](ActionScorer::Result result) { status = result.status(); });
    REQUIRE(submitted.ok());
  }

  CHECK(status.code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("LmPolicy normalises as it is asked", "[policy]") {
  // The fake scorer gives every byte of a text the log-probability -1.
  auto [normalization, expected] = GENERATE(table<ScoreNormalization, double>({
      {ScoreNormalization::kSum, -9.0},
      {ScoreNormalization::kTokenMean, -1.0},
      {ScoreNormalization::kWordMean, -4.5},
  }));
  LmPolicy policy(std::make_unique<FakeActionScorer>(), {.max_batch = 1});
  Query query = MakeQuery({"fuse gelu"});
  query.normalization = normalization;

  const absl::StatusOr<Distribution> distribution = Ask(policy, query);

  REQUIRE(distribution.ok());
  CHECK(distribution->scores == std::vector<double>{expected});
  CHECK(distribution->token_counts == std::vector<int>{9});
}

TEST_CASE("LmPolicy prefers the action of higher score", "[policy]") {
  LmPolicy policy(std::make_unique<FakeActionScorer>(), {.max_batch = 1});

  const absl::StatusOr<Distribution> distribution = Ask(policy, MakeQuery({"capture", "stop"}));

  REQUIRE(distribution.ok());
  CHECK(distribution->probabilities[1] > 0.9);
}

TEST_CASE("LmPolicy shortens a prompt that exceeds the context", "[policy]") {
  auto scorer = std::make_unique<FakeActionScorer>();
  FakeActionScorer& fake = *scorer;
  fake.context_bytes = 4000;
  LmPolicy policy(std::move(scorer), {.max_batch = 1});
  Query query = MakeQuery({"stop"});
  for (int i = 0; i < 1000; ++i) query.search_state.program += "//@ a line of the program\n";

  const absl::StatusOr<Distribution> distribution = Ask(policy, query);

  REQUIRE(distribution.ok());
  CHECK(fake.prompts.back().size() <= 4000);
  CHECK(fake.prompts.size() > 1);
}

TEST_CASE("LmPolicy gives up when no prompt fits", "[policy]") {
  auto scorer = std::make_unique<FakeActionScorer>();
  scorer->context_bytes = 10;
  LmPolicy policy(std::move(scorer), {.max_batch = 1});

  CHECK(Ask(policy, MakeQuery({"stop"})).status().code() == absl::StatusCode::kOutOfRange);
}

TEST_CASE("LmPolicy refuses an action without text", "[policy]") {
  LmPolicy policy(std::make_unique<FakeActionScorer>(), {.max_batch = 1});

  CHECK(Ask(policy, MakeQuery({""})).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mtmc::policy

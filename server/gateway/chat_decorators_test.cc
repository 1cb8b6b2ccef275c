// SPDX-License-Identifier: Apache-2.0

// RetryingChatModel, BreakerChatModel, MeteredChatModel and the recording.

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <iterator>

#include "common/base/temp_dir.h"
#include "common/metrics/metrics.h"
#include "common/rpc/error.h"
#include "common/testing/fake_clock.h"
#include "common/testing/leaping_clock.h"
#include "common/testing/status_matchers.h"
#include "server/gateway/breaker_chat_model.h"
#include "server/gateway/fake_chat_model.h"
#include "server/gateway/metered_chat_model.h"
#include "server/gateway/recording.h"
#include "server/gateway/retrying_chat_model.h"

namespace mtmc::gateway {
namespace {

using Catch::Matchers::Contains;
using testing::IsOk;
using testing::LeapingClock;
using testing::StatusIs;

absl::Status Unavailable(const std::map<std::string, std::string>& metadata = {}) {
  return rpc::MakeError(absl::StatusCode::kUnavailable, "CODER_UNAVAILABLE", "busy", metadata);
}

// A fake under the decorator `Decorator`, which owns it.
template <typename Decorator>
struct Decorated {
  explicit Decorated(base::Clock& clock, typename Decorator::Options options = {})
      : fake(new FakeChatModel), model(std::unique_ptr<ChatModel>(fake), clock, options) {}

  FakeChatModel* fake;
  Decorator model;
};

TEST_CASE("RetryingChatModel asks again while the model is unavailable", "[gateway]") {
  LeapingClock clock;
  Decorated<RetryingChatModel> retrying(clock);
  retrying.fake->Push(Unavailable());
  retrying.fake->Push(Unavailable());
  retrying.fake->Push(ChatReply{.text = "ok"});

  const absl::StatusOr<ChatReply> reply = retrying.model.Complete({}, absl::InfiniteFuture());

  REQUIRE_THAT(reply.status(), IsOk());
  CHECK(retrying.fake->requests().size() == 3);
}

TEST_CASE("RetryingChatModel bills the attempts that failed, too", "[gateway]") {
  LeapingClock clock;
  Decorated<RetryingChatModel> retrying(clock);
  retrying.fake->Push(WithTokens(Unavailable(), ChatTokens{.input = 5, .output = 1}));
  retrying.fake->Push(Unavailable());
  retrying.fake->Push(WithTokens(Unavailable(), ChatTokens{.input = 7}));
  retrying.fake->Push(ChatReply{.input_tokens = 10, .output_tokens = 2});

  const absl::StatusOr<ChatReply> reply = retrying.model.Complete({}, absl::InfiniteFuture());

  REQUIRE_THAT(reply.status(), IsOk());
  CHECK(reply->input_tokens == 22);
  CHECK(reply->output_tokens == 3);
}

TEST_CASE("RetryingChatModel waits as long as the provider asks", "[gateway]") {
  LeapingClock clock;
  const absl::Time start = clock.Now();
  Decorated<RetryingChatModel> retrying(clock);
  retrying.fake->Push(Unavailable({{"retry_after_seconds", "7"}}));
  retrying.fake->Push(ChatReply{.text = "ok"});

  REQUIRE_THAT(retrying.model.Complete({}, absl::InfiniteFuture()).status(), IsOk());

  CHECK(clock.Now() - start == absl::Seconds(7));
}

TEST_CASE("RetryingChatModel gives the last error when attempts run out", "[gateway]") {
  LeapingClock clock;
  Decorated<RetryingChatModel> retrying(clock, {.max_attempts = 3});
  for (int i = 0; i < 5; ++i) retrying.fake->Push(Unavailable());

  CHECK_THAT(retrying.model.Complete({}, absl::InfiniteFuture()).status(),
             StatusIs(absl::StatusCode::kUnavailable, "busy"));
  CHECK(retrying.fake->requests().size() == 3);
}

TEST_CASE("RetryingChatModel does not begin a wait that passes the deadline", "[gateway]") {
  LeapingClock clock;
  const absl::Time start = clock.Now();
  Decorated<RetryingChatModel> retrying(clock);
  retrying.fake->Push(Unavailable({{"retry_after_seconds", "30"}}));

  CHECK_THAT(retrying.model.Complete({}, start + absl::Seconds(10)).status(),
             StatusIs(absl::StatusCode::kUnavailable));
  CHECK(clock.Now() == start);
}

TEST_CASE("RetryingChatModel does not repeat what was looked at", "[gateway]") {
  const absl::StatusCode code =
      GENERATE(absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kDataLoss,
               absl::StatusCode::kFailedPrecondition);
  LeapingClock clock;
  Decorated<RetryingChatModel> retrying(clock);
  retrying.fake->Push(absl::Status(code, "no"));

  CHECK_THAT(retrying.model.Complete({}, absl::InfiniteFuture()).status(), StatusIs(code));
  CHECK(retrying.fake->requests().size() == 1);
}

TEST_CASE("BreakerChatModel refuses at once after failures in a row", "[gateway]") {
  testing::FakeClock clock;
  Decorated<BreakerChatModel> breaker(clock, {.max_failures = 2});
  breaker.fake->Push(Unavailable());
  breaker.fake->Push(absl::DeadlineExceededError("slow"));
  for (int i = 0; i < 2; ++i)
    breaker.model.Complete({}, absl::InfiniteFuture()).status().IgnoreError();

  CHECK_THAT(breaker.model.Complete({}, absl::InfiniteFuture()).status(),
             StatusIs(absl::StatusCode::kUnavailable, "2 times in a row"));
  CHECK(breaker.fake->requests().size() == 2);
}

TEST_CASE("BreakerChatModel closes again when its probe succeeds", "[gateway]") {
  testing::FakeClock clock;
  Decorated<BreakerChatModel> breaker(clock, {.max_failures = 1, .open_time = absl::Seconds(30)});
  breaker.fake->Push(Unavailable());
  breaker.fake->Push(ChatReply{});
  breaker.fake->Push(ChatReply{});
  breaker.model.Complete({}, absl::InfiniteFuture()).status().IgnoreError();

  clock.Advance(absl::Seconds(31));

  CHECK_THAT(breaker.model.Complete({}, absl::InfiniteFuture()).status(), IsOk());
  CHECK_THAT(breaker.model.Complete({}, absl::InfiniteFuture()).status(), IsOk());
}

TEST_CASE("BreakerChatModel opens again when its probe fails", "[gateway]") {
  testing::FakeClock clock;
  Decorated<BreakerChatModel> breaker(clock, {.max_failures = 1, .open_time = absl::Seconds(30)});
  breaker.fake->Push(Unavailable());
  breaker.fake->Push(Unavailable());
  breaker.model.Complete({}, absl::InfiniteFuture()).status().IgnoreError();
  clock.Advance(absl::Seconds(31));
  breaker.model.Complete({}, absl::InfiniteFuture()).status().IgnoreError();

  CHECK_THAT(breaker.model.Complete({}, absl::InfiniteFuture()).status(),
             StatusIs(absl::StatusCode::kUnavailable, "in a row"));
  CHECK(breaker.fake->requests().size() == 2);
}

// Asks the decorator around it while it answers.
class NestedChatModel final : public ChatModel {
 public:
  absl::StatusOr<ChatReply> Complete(const ChatRequest&, absl::Time) override {
    ++calls;
    // A copy: the answer may change what the next one is.
    const auto answer = during;
    return answer();
  }

  std::function<absl::StatusOr<ChatReply>()> during;
  int calls = 0;
};

TEST_CASE("BreakerChatModel has one probe at a time, however long it takes", "[gateway]") {
  testing::FakeClock clock;
  auto* nested = new NestedChatModel;
  BreakerChatModel breaker(std::unique_ptr<ChatModel>(nested), clock,
                           {.max_failures = 1, .open_time = absl::Seconds(30)});
  nested->during = [] { return Unavailable(); };
  breaker.Complete({}, absl::InfiniteFuture()).status().IgnoreError();
  clock.Advance(absl::Seconds(31));
  absl::Status other;
  nested->during = [&]() -> absl::StatusOr<ChatReply> {
    clock.Advance(absl::Seconds(31));
    nested->during = [] { return ChatReply{}; };
    other = breaker.Complete({}, absl::InfiniteFuture()).status();
    return ChatReply{};
  };

  CHECK_THAT(breaker.Complete({}, absl::InfiniteFuture()).status(), IsOk());

  CHECK_THAT(other, StatusIs(absl::StatusCode::kUnavailable, "tries it again"));
  CHECK(nested->calls == 2);
  CHECK_THAT(breaker.Complete({}, absl::InfiniteFuture()).status(), IsOk());
}

TEST_CASE("BreakerChatModel does not count refusals", "[gateway]") {
  testing::FakeClock clock;
  Decorated<BreakerChatModel> breaker(clock, {.max_failures = 1});
  breaker.fake->Push(absl::FailedPreconditionError("bad request"));
  breaker.fake->Push(ChatReply{});
  breaker.model.Complete({}, absl::InfiniteFuture()).status().IgnoreError();

  CHECK_THAT(breaker.model.Complete({}, absl::InfiniteFuture()).status(), IsOk());
}

TEST_CASE("MeteredChatModel counts requests and tokens by model", "[gateway]") {
  LeapingClock clock;
  metrics::Registry registry("test");
  auto* fake = new FakeChatModel;
  MeteredChatModel metered(std::unique_ptr<ChatModel>(fake), clock, registry);
  fake->Push(ChatReply{.input_tokens = 10, .output_tokens = 4});
  fake->Push(absl::DeadlineExceededError("slow"));

  metered.Complete({.model = "m"}, absl::InfiniteFuture()).status().IgnoreError();
  metered.Complete({.model = "m"}, absl::InfiniteFuture()).status().IgnoreError();

  const std::string text = registry.Render();
  CHECK_THAT(text, Contains(R"(mtmc_llm_requests_total{model="m",outcome="ok"} 1)"));
  CHECK_THAT(text, Contains(R"(mtmc_llm_requests_total{model="m",outcome="timeout"} 1)"));
  CHECK_THAT(text, Contains(R"(mtmc_llm_tokens_total{model="m",type="input"} 10)"));
  CHECK_THAT(text, Contains(R"(mtmc_llm_request_duration_seconds_count{model="m"} 2)"));
}

TEST_CASE("MeteredChatModel counts what tokens cost", "[gateway]") {
  LeapingClock clock;
  metrics::Registry registry("test");
  auto* fake = new FakeChatModel;
  MeteredChatModel metered(std::unique_ptr<ChatModel>(fake), clock, registry,
                           {.input_usd_per_million = 2, .output_usd_per_million = 8});
  fake->Push(ChatReply{.input_tokens = 1'000'000, .output_tokens = 500'000});

  metered.Complete({.model = "m"}, absl::InfiniteFuture()).status().IgnoreError();

  CHECK_THAT(registry.Render(), Contains(R"(mtmc_llm_cost_usd_total{model="m"} 6)"));
}

// A request whose volatile part is `measured`.
ChatRequest MakeRequest(const std::string& text, const std::string& measured = "") {
  return {.model = "m", .messages = {{.text = text}, {.text = measured, .is_volatile = true}}};
}

TEST_CASE("DigestOf leaves out what is volatile", "[gateway]") {
  CHECK(DigestOf(MakeRequest("a", "1 ms")) == DigestOf(MakeRequest("a", "2 ms")));
  CHECK(DigestOf(MakeRequest("a")) != DigestOf(MakeRequest("b")));
}

TEST_CASE("A recording answers the same requests without a model", "[gateway]") {
  auto folder = base::TempDir::Create("recording");
  REQUIRE_THAT(folder.status(), IsOk());
  const std::filesystem::path path = folder->path() / "replies.jsonl";
  auto* fake = new FakeChatModel;
  fake->Push(
      ChatReply{.text = "first\n\xc3\xa9", .is_cut = true, .input_tokens = 5, .model = "m-1"});
  fake->Push(ChatReply{.text = "second"});
  {
    auto recording = RecordingChatModel::Create(std::unique_ptr<ChatModel>(fake), path);
    REQUIRE_THAT(recording.status(), IsOk());
    for (int i = 0; i < 2; ++i) {
      REQUIRE_THAT((*recording)->Complete(MakeRequest("a"), absl::InfiniteFuture()).status(),
                   IsOk());
    }
  }

  auto replay = ReplayChatModel::Create(path);

  REQUIRE_THAT(replay.status(), IsOk());
  const auto ask = [&](const std::string& text) {
    return (*replay)->Complete(MakeRequest(text, "3 ms"), absl::InfiniteFuture());
  };
  const absl::StatusOr<ChatReply> first = ask("a");
  REQUIRE_THAT(first.status(), IsOk());
  CHECK(first->text == "first\n\xc3\xa9");
  CHECK((first->is_cut && first->input_tokens == 5 && first->model == "m-1"));
  CHECK(ask("a")->text == "second");
  CHECK(ask("a")->text == "second");
  CHECK(rpc::ErrorReason(ask("b").status()) == "REPLAY_MISSING");
}

TEST_CASE("A full disk under a recording costs one reply, and loses none", "[gateway]") {
  auto folder = base::TempDir::Create("recording");
  REQUIRE_THAT(folder.status(), IsOk());
  const std::filesystem::path path = folder->path() / "replies.jsonl";
  auto* fake = new FakeChatModel;
  fake->Push(ChatReply{.text = "paid"});
  fake->Push(ChatReply{.text = "next"});
  auto recording = RecordingChatModel::Create(std::unique_ptr<ChatModel>(fake), path);
  REQUIRE_THAT(recording.status(), IsOk());
  const auto ask = [&](const std::string& text) {
    return (*recording)->Complete(MakeRequest(text), absl::InfiniteFuture());
  };
  // A device on which every write fails as on a full disk.
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/dev/full", path);
  for (const char* text : {"a", "a", "b"}) {
    CHECK(rpc::ErrorReason(ask(text).status()) == "DISK_FULL");
  }
  CHECK(fake->requests().size() == 1);
  std::filesystem::remove(path);

  const auto later = ask("b");
  const auto first = ask("a");

  REQUIRE_THAT(later.status(), IsOk());
  CHECK(later->text == "next");
  REQUIRE_THAT(first.status(), IsOk());
  CHECK(first->text == "paid");
  CHECK(fake->requests().size() == 2);
  auto replay = ReplayChatModel::Create(path);
  REQUIRE_THAT(replay.status(), IsOk());
  CHECK((*replay)->Complete(MakeRequest("a"), absl::InfiniteFuture())->text == "paid");
}

TEST_CASE("ReplayChatModel names the line that is no reply", "[gateway]") {
  auto folder = base::TempDir::Create("recording");
  REQUIRE_THAT(folder.status(), IsOk());
  const std::filesystem::path path = folder->path() / "replies.jsonl";
  std::ofstream(path) << "{\"request\":1}\n";

  CHECK_THAT(ReplayChatModel::Create(path).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "line 1"));
}

TEST_CASE("ReplayChatModel drops a last line that a crash cut", "[gateway]") {
  auto folder = base::TempDir::Create("recording");
  REQUIRE_THAT(folder.status(), IsOk());
  const std::filesystem::path path = folder->path() / "replies.jsonl";
  std::ofstream(path) << "{\"requ";

  CHECK_THAT(ReplayChatModel::Create(path).status(), IsOk());
}

}  // namespace
}  // namespace mtmc::gateway

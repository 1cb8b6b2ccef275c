// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/open_ai_chat_model.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "absl/time/clock.h"
#include "common/base/temp_dir.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/gateway/fake_llm_server.h"

namespace mtmc::gateway {
namespace {

using Catch::Matchers::Contains;
using testing::IsOk;
using testing::StatusIs;

constexpr char kSecret[] = "sk-test-0123456789";
constexpr char kCompletion[] =
    R"({"model":"m-1","choices":[{"message":{"content":"hello"},"finish_reason":"stop"}],)"
    R"("usage":{"prompt_tokens":12,"completion_tokens":3}})";

// Asks the server once, with a limit that only a hanging server reaches.
absl::StatusOr<ChatReply> Ask(const FakeLlmServer& server, HttpLimits limits = {}) {
  auto model = OpenAiChatModel::Create({server.base_url(), ApiKey(kSecret), limits});
  REQUIRE_THAT(model.status(), IsOk());
  const ChatRequest request = {.model = "m", .messages = {{.text = "hi"}}};
  return (*model)->Complete(request, absl::Now() + absl::Seconds(20));
}

TEST_CASE("OpenAiChatModel returns the reply with its tokens", "[gateway]") {
  FakeLlmServer server;
  server.Answer(200, kCompletion);

  const absl::StatusOr<ChatReply> reply = Ask(server);

  REQUIRE_THAT(reply.status(), IsOk());
  CHECK(reply->text == "hello");
  CHECK(reply->model == "m-1");
  CHECK(reply->input_tokens == 12);
  CHECK(reply->output_tokens == 3);
  CHECK_FALSE(reply->is_cut);
}

TEST_CASE("OpenAiChatModel sends key, model and limits", "[gateway]") {
  FakeLlmServer server;
  server.Answer(200, kCompletion);

  REQUIRE_THAT(Ask(server).status(), IsOk());

  REQUIRE(server.requests().size() == 1);
  const std::string request = server.requests().front();
  CHECK_THAT(request, Contains("POST /v1/chat/completions HTTP/1.1"));
  CHECK_THAT(request, Contains(std::string("Authorization: Bearer ") + kSecret));
  CHECK_THAT(request, Contains(R"("max_tokens":16384)"));
  CHECK_THAT(request, Contains(R"("stream":false)"));
}

TEST_CASE("OpenAiChatModel calls a garbled answer DATA_LOSS", "[gateway]") {
  FakeLlmServer server;
  const std::string bytes =
      GENERATE("", "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\n",
               "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"choices\":",
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
               "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
               "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
               "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"choices\":[]}",
               "HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n{\"choices\":[\"none\"]}");
  CAPTURE(bytes);
  server.AnswerBytes(bytes);

  CHECK_THAT(Ask(server).status(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_CASE("OpenAiChatModel refuses a body above its limit", "[gateway]") {
  FakeLlmServer server;
  server.Answer(200, std::string(100'000, 'x'));

  CHECK_THAT(Ask(server, {.max_body_bytes = 10'000}).status(),
             StatusIs(absl::StatusCode::kDataLoss));
}

TEST_CASE("OpenAiChatModel gives up on a server that never answers", "[gateway]") {
  FakeLlmServer server;
  server.Hang();

  CHECK_THAT(Ask(server, {.first_byte_timeout = absl::Milliseconds(50)}).status(),
             StatusIs(absl::StatusCode::kDeadlineExceeded, "waiting for the answer"));
}

TEST_CASE("OpenAiChatModel gives up on a body that never ends", "[gateway]") {
  FakeLlmServer server;
  server.Hang();
  auto model = OpenAiChatModel::Create({server.base_url(), ApiKey(), {}});
  REQUIRE_THAT(model.status(), IsOk());

  const absl::StatusOr<ChatReply> reply =
      (*model)->Complete({}, absl::Now() + absl::Milliseconds(50));

  CHECK_THAT(reply.status(), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_CASE("OpenAiChatModel passes on when to come again", "[gateway]") {
  FakeLlmServer server;
  server.Answer(429, R"({"error":{"message":"slow down"}})", "Retry-After: 7\r\n");

  const absl::StatusOr<ChatReply> reply = Ask(server);

  REQUIRE_THAT(reply.status(), StatusIs(absl::StatusCode::kUnavailable, "slow down"));
  CHECK(rpc::ErrorMetadata(reply.status())["retry_after_seconds"] == "7");
}

TEST_CASE("OpenAiChatModel tells a broken server from a refusal", "[gateway]") {
  const auto [http_status, code] =
      GENERATE(table<int, absl::StatusCode>({{500, absl::StatusCode::kUnavailable},
                                             {503, absl::StatusCode::kUnavailable},
                                             {400, absl::StatusCode::kInvalidArgument},
                                             {404, absl::StatusCode::kFailedPrecondition}}));
  CAPTURE(http_status);
  FakeLlmServer server;
  server.Answer(http_status, "<html>no</html>");

  CHECK_THAT(Ask(server).status(), StatusIs(code));
}

TEST_CASE("OpenAiChatModel says what to do about a wrong key", "[gateway]") {
  FakeLlmServer server;
  server.Answer(401, R"({"error":{"message":"bad key"}})");

  const absl::Status status = Ask(server).status();

  CHECK(rpc::ErrorReason(status) == "CODER_REFUSED");
  CHECK_THAT(status.ToString(), Contains("bad key; check the key in the gateway's --api-key-file"));
}

TEST_CASE("OpenAiChatModel tells what a failed call was billed", "[gateway]") {
  const std::string usage = R"("usage":{"prompt_tokens":30,"completion_tokens":4})";
  FakeLlmServer server;

  SECTION("of an error") { server.Answer(500, "{\"error\":{}," + usage + "}"); }
  SECTION("of a refusal") { server.Answer(400, "{\"error\":{}," + usage + "}"); }
  SECTION("of a reply without a choice") { server.Answer(200, "{" + usage + "}"); }

  const std::optional<ChatTokens> tokens = TokensOf(Ask(server).status());
  REQUIRE(tokens);
  CHECK(tokens->input == 30);
  CHECK(tokens->output == 4);
}

TEST_CASE("OpenAiChatModel is unavailable where nothing listens", "[gateway]") {
  std::string base_url;
  {
    FakeLlmServer server;
    base_url = server.base_url();
  }
  auto model = OpenAiChatModel::Create({base_url, ApiKey(), {}});
  REQUIRE_THAT(model.status(), IsOk());

  CHECK_THAT((*model)->Complete({}, absl::Now() + absl::Seconds(20)).status(),
             StatusIs(absl::StatusCode::kUnavailable));
}

TEST_CASE("OpenAiChatModel never repeats the key", "[gateway]") {
  const std::string echo = std::string("your key ") + kSecret + " is bad";
  FakeLlmServer server;

  SECTION("of a refusal") {
    server.Answer(401, R"({"error":{"message":")" + echo + R"("}})");
    const absl::Status status = Ask(server).status();
    CHECK_THAT(status.ToString(), Contains("your key [key] is bad"));
    CHECK_THAT(status.ToString(), !Contains(kSecret));
  }
  SECTION("cut within the key") {
    server.Answer(500, std::string(290, 'x') + kSecret);
    CHECK_THAT(Ask(server).status().ToString(), !Contains("sk-test"));
  }
  SECTION("of a reply") {
    server.Answer(200, R"({"model":"m","choices":[{"message":{"content":")" + echo + R"("}}]})");
    CHECK(Ask(server)->text == "your key [key] is bad");
  }
}

TEST_CASE("OpenAiChatModel refuses a base URL it cannot use", "[gateway]") {
  const std::string url = GENERATE("", "localhost:8000", "ftp://host/v1", "http://",
                                   "http://user:secret@host/v1", "http://host/v1?key=1");
  CAPTURE(url);

  const absl::Status status = OpenAiChatModel::Create({url, ApiKey(), {}}).status();

  CHECK_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  CHECK_THAT(status.ToString(), !Contains("secret"));
}

TEST_CASE("ToOpenAiJson joins neighbouring messages of one role", "[gateway]") {
  const ChatRequest request = {
      .model = "m",
      .messages = {
          {.role = ChatMessage::Role::kSystem, .text = "s"}, {.text = "a"}, {.text = "b\xff"}}};

  const std::string json = ToOpenAiJson(request);

  CHECK_THAT(json, Contains(R"({"content":"s","role":"system"})"));
  CHECK_THAT(json, Contains(R"(a\n\nb)"));
}

TEST_CASE("ApiKey reads the first line of a file", "[gateway]") {
  auto folder = base::TempDir::Create("key");
  REQUIRE_THAT(folder.status(), IsOk());
  const std::filesystem::path path = folder->path() / "key";
  std::ofstream(path) << "  " << kSecret << " \nrest\n";

  const absl::StatusOr<ApiKey> key = ApiKey::ReadFile(path);

  REQUIRE_THAT(key.status(), IsOk());
  CHECK(key->AuthorizationHeader() == std::string("Bearer ") + kSecret);
}

TEST_CASE("ApiKey refuses a file without a key and does not quote it", "[gateway]") {
  auto folder = base::TempDir::Create("key");
  REQUIRE_THAT(folder.status(), IsOk());
  const std::filesystem::path path = folder->path() / "key";
  const std::string content = GENERATE("", "\n", "two words", "tab\tin it");
  std::ofstream(path) << content;

  const absl::Status status = ApiKey::ReadFile(path).status();

  CHECK_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  CHECK_THAT(status.ToString(), !Contains("words"));
}

}  // namespace
}  // namespace mtmc::gateway

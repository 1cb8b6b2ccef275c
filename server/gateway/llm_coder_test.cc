// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/llm_coder.h"

#include <catch2/catch.hpp>

#include "common/base/digest.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/gateway/fake_chat_model.h"
#include "server/gateway/program_actions.h"
#include "server/gateway/prompt.h"

namespace mtmc::gateway {
namespace {

using Catch::Matchers::Contains;
using testing::IsOk;
using testing::StatusIs;

const std::string kProgram = R"(//@ mtmc 1 opencl
//@ input x f32[64]
//@ buffer h f32[64]
//@ output y f32[64]
//@ launch add_one grid=1 block=64 args=(x, h)
//@ launch relu grid=1 block=64 args=(h, y)
__kernel void add_one(__global const float* x, __global float* h) { h[get_global_id(0)] = x[get_global_id(0)] + 1; }
__kernel void relu(__global const float* h, __global float* y) { y[get_global_id(0)] = fmax(h[get_global_id(0)], 0.0f); }
)";

CodingTask MakeTask() {
  CodingTask task;
  const kernel::TensorType type = *kernel::FindTensorType("f32[64]");
  task.graph.source = "import torch\nx = x + 1\nx = torch.relu(x)\n";
  task.graph.inputs.push_back({.name = "x", .type = type});
  task.graph.outputs.push_back({.name = "y", .value = "x", .type = type});
  task.device.text = "Device: Test GPU\n";
  task.precision = "kernelbench";
  task.model = "m";
  return task;
}

const CodingAction kFuse = {.type = "fuse",
                            .kernels = {"add_one", "relu"},
                            .first_line = 2,
                            .last_line = 3,
                            .text = "fuse add_one and relu (lines 2-3)"};

std::string ReasonOf(const absl::StatusOr<CodingResult>& result) {
  REQUIRE_THAT(result.status(), IsOk());
  const auto* failure = std::get_if<CoderFailure>(&result->outcome);
  return failure == nullptr ? "" : failure->reason;
}

absl::StatusOr<CodingResult> Apply(FakeChatModel& model, const CodingTask& task = MakeTask()) {
  LlmCoder coder(model, nullptr, {});
  return coder.ApplyAction(task, {.text = kProgram}, kFuse, {});
}

std::string AllText(const std::vector<ChatMessage>& messages) {
  std::string text;
  for (const ChatMessage& message : messages) text += message.text;
  return text;
}

TEST_CASE("LlmCoder returns the model's program with the tokens used", "[gateway]") {
  FakeChatModel model;
  model.Push(ChatReply{.text = "```\n" + kProgram + "```",
                       .input_tokens = 100,
                       .output_tokens = 20,
                       .model = "m-1"});

  const absl::StatusOr<CodingResult> result = Apply(model);

  REQUIRE(ReasonOf(result).empty());
  CHECK(std::get<CodedProgram>(result->outcome).text == kProgram);
  CHECK(result->token_use.input_tokens == 100);
  CHECK(result->token_use.output_tokens == 20);
  CHECK(result->token_use.model == "m-1");
  CHECK(result->token_use.prompt_sha256.size() == 64);
  CHECK_FALSE(result->token_use.cost_micros);
  REQUIRE(result->exchange);
  CHECK(result->exchange->reply == "```\n" + kProgram + "```");
  CHECK(result->exchange->prompt == ToTranscript(model.requests().front()));
}

TEST_CASE("LlmCoder says what tokens cost, of failed calls as well", "[gateway]") {
  FakeChatModel model;
  model.Push(
      ChatReply{.text = "```\n" + kProgram + "```", .input_tokens = 1000, .output_tokens = 20});
  model.Push(WithTokens(absl::DataLossError("garbled"), ChatTokens{.input = 30, .output = 4}));
  model.Push(WithTokens(absl::UnavailableError("busy"), ChatTokens{.input = 2, .output = 0}));
  LlmCoder coder(model, nullptr,
                 {.prices = {.input_usd_per_million = 2.5, .output_usd_per_million = 10}});
  const auto apply = [&] { return coder.ApplyAction(MakeTask(), {.text = kProgram}, kFuse, {}); };

  CHECK(apply()->token_use.cost_micros == 2700);
  const absl::StatusOr<CodingResult> garbled = apply();
  CHECK(garbled->token_use.cost_micros == 115);
  CHECK_FALSE(garbled->exchange->prompt.empty());
  CHECK(garbled->exchange->reply.empty());
  CHECK(rpc::ErrorMetadata(apply().status())["cost_micros"] == "5");
}

TEST_CASE("A transcript is JSON whatever the sources hold", "[gateway]") {
  const ChatRequest request = {
      .messages = {{.role = ChatMessage::Role::kSystem, .text = "be \"exact\""},
                   {.text = "bytes \xff\n", .is_volatile = true}}};

  CHECK(ToTranscript(request) ==
        "[{\"content\":\"be \\\"exact\\\"\",\"role\":\"system\"},"
        "{\"content\":\"bytes \xEF\xBF\xBD\\n\",\"role\":\"user\"}]");
}

TEST_CASE("LlmCoder bills a reply that it cannot use", "[gateway]") {
  FakeChatModel model;
  model.Push(ChatReply{.text = "no", .output_tokens = 20});

  const absl::StatusOr<CodingResult> result = Apply(model);

  CHECK(ReasonOf(result) == "REPLY_NOT_PARSED");
  CHECK(result->token_use.output_tokens == 20);
}

TEST_CASE("LlmCoder makes a coder failure of a model that fails", "[gateway]") {
  const auto [outcome, reason] = GENERATE(table<absl::StatusOr<ChatReply>, std::string>({
      {ChatReply{}, "REPLY_EMPTY"},
      {ChatReply{.text = "sorry"}, "REPLY_NOT_PARSED"},
      {ChatReply{.text = "```\n//@ mtmc 1 cuda\n//@ launch f grid=1 block=1 args=()\n```"},
       "REPLY_NOT_PARSED"},
      {absl::DeadlineExceededError("slow"), "REPLY_TIMEOUT"},
      {absl::DataLossError("garbled"), "REPLY_NOT_PARSED"},
  }));
  CAPTURE(reason);
  FakeChatModel model;
  model.Push(outcome);

  CHECK(ReasonOf(Apply(model)) == reason);
}

TEST_CASE("LlmCoder reports a model that cannot be reached as UNAVAILABLE", "[gateway]") {
  FakeChatModel model;
  model.Push(absl::UnavailableError("refused"));

  const absl::Status status = Apply(model).status();

  CHECK_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  CHECK(rpc::ErrorReason(status) == "CODER_UNAVAILABLE");
}

TEST_CASE("LlmCoder does not begin a call that its tokens cannot pay", "[gateway]") {
  FakeChatModel model;
  CodingTask task = MakeTask();
  task.max_tokens = 1000;

  const absl::Status status = Apply(model, task).status();

  CHECK_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK(rpc::ErrorReason(status) == "TOKEN_BUDGET_EXHAUSTED");
  CHECK(model.requests().empty());
}

TEST_CASE("LlmCoder skips a step whose prompt is longer than it allows", "[gateway]") {
  FakeChatModel model;
  LlmCoder coder(model, nullptr, {.max_tokens = 1000});

  CHECK(ReasonOf(coder.ApplyAction(MakeTask(), {.text = kProgram}, kFuse, {})) ==
        "PROMPT_TOO_LONG");
  CHECK(model.requests().empty());
}

TEST_CASE("LlmCoder bills a call without an answer with all that was reserved", "[gateway]") {
  FakeChatModel model;
  model.Push(absl::DeadlineExceededError("slow"));

  const absl::StatusOr<CodingResult> result = Apply(model);

  REQUIRE(ReasonOf(result) == "REPLY_TIMEOUT");
  const ChatRequest request = model.requests().front();
  CHECK(result->token_use.input_tokens == EstimateTokens(request.messages));
  CHECK(result->token_use.output_tokens == request.max_reply_tokens);
}

TEST_CASE("LlmCoder bills what the provider says of a failed call", "[gateway]") {
  const absl::StatusCode code =
      GENERATE(absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kDataLoss,
               absl::StatusCode::kInvalidArgument);
  FakeChatModel model;
  model.Push(WithTokens(absl::Status(code, "no"), ChatTokens{.input = 30, .output = 4}));

  const absl::StatusOr<CodingResult> result = Apply(model);

  REQUIRE_FALSE(ReasonOf(result).empty());
  CHECK(result->token_use.input_tokens == 30);
  CHECK(result->token_use.output_tokens == 4);
}

TEST_CASE("LlmCoder tells what an error was billed", "[gateway]") {
  FakeChatModel model;
  model.Push(WithTokens(absl::UnavailableError("busy"), ChatTokens{.input = 30, .output = 4}));

  CHECK(rpc::ErrorMetadata(Apply(model).status())["tokens"] == "34");
}

TEST_CASE("LlmCoder limits the reply to what is left of the tokens", "[gateway]") {
  FakeChatModel model;
  CodingTask task = MakeTask();
  task.max_tokens = 8000;
  model.Push(ChatReply{});

  Apply(model, task).status().IgnoreError();

  REQUIRE(model.requests().size() == 1);
  const ChatRequest request = model.requests().front();
  CHECK(request.max_reply_tokens + EstimateTokens(request.messages) == 8000);
}

TEST_CASE("LlmCoder needs a model", "[gateway]") {
  FakeChatModel model;
  CodingTask task = MakeTask();
  task.model.clear();

  CHECK(rpc::ErrorReason(Apply(model, task).status()) == "MODEL_NOT_SET");
}

TEST_CASE("LlmCoder has nothing to apply for stop", "[gateway]") {
  FakeChatModel model;
  LlmCoder coder(model, nullptr, {});

  CHECK(ReasonOf(coder.ApplyAction(MakeTask(), {}, {.type = "stop"}, {})) == "ILLEGAL_ACTION");
}

TEST_CASE("LlmCoder asks for a start program where no other coder has one", "[gateway]") {
  FakeChatModel model;
  model.Push(ChatReply{.text = "```\n" + kProgram + "```"});
  LlmCoder coder(model, nullptr, {});

  CHECK(ReasonOf(coder.CreateProgram(MakeTask())).empty());
  CHECK_THAT(AllText(model.requests().front().messages), Contains("simple and certainly correct"));
}

TEST_CASE("MakeActionPrompt holds everything the step needs", "[gateway]") {
  const Feedback feedback = {.outcome = Feedback::Outcome::kCorrect, .text = "verdict: correct\n"};

  const std::string text =
      AllText(MakeActionPrompt(MakeTask(), {.text = kProgram}, kFuse, feedback));

  for (const char* part :
       {"torch.relu(x)", "//@ output y f32[64]", "Device: Test GPU", "__kernel void add_one",
        "verdict: correct", "fuse add_one and relu (lines 2-3)", "3: x = torch.relu(x)",
        "worked example", "exactly one fenced code block", "Dialect: opencl"}) {
    CHECK_THAT(text, Contains(part));
  }
}

TEST_CASE("MakeActionPrompt keeps measured numbers out of the digest", "[gateway]") {
  const auto digest = [](const std::string& measured) {
    return DigestOf(
        {.messages = MakeActionPrompt(MakeTask(), {.text = kProgram}, kFuse,
                                      {.text = "verdict: correct\n", .measured_text = measured})});
  };

  CHECK(digest("median time: 1 ms\n") == digest("median time: 2 ms\n"));
}

TEST_CASE("MakeActionPrompt cuts a log without bound", "[gateway]") {
  const Feedback feedback = {.outcome = Feedback::Outcome::kBuildFailed,
                             .text = std::string(10'000'000, 'e')};

  CHECK(AllText(MakeActionPrompt(MakeTask(), {.text = kProgram}, kFuse, feedback)).size() < 60'000);
}

// Texts of the actions on `program`.
std::vector<std::string> List(const CodingTask& task, const std::string& program,
                              Feedback feedback = {}) {
  std::vector<std::string> texts;
  for (const CodingAction& action : ListProgramActions(task, program, feedback))
    texts.push_back(action.text);
  return texts;
}

TEST_CASE("ListProgramActions offers fusions along the data flow and ends with stop", "[gateway]") {
  const std::vector<std::string> texts = List(MakeTask(), kProgram);

  REQUIRE(!texts.empty());
  CHECK(texts.front() == "fuse add_one and relu");
  CHECK(texts.back() == "stop");
  CHECK(std::count(texts.begin(), texts.end(), "vectorize loads and stores of relu") == 1);
  CHECK(std::count(texts.begin(), texts.end(), "capture the whole plan as one graph") == 1);
}

TEST_CASE("ListProgramActions keeps to what the job and the device allow", "[gateway]") {
  CodingTask task = MakeTask();
  const auto has = [&](const std::string& text) {
    const std::vector<std::string> texts = List(task, kProgram);
    return std::count(texts.begin(), texts.end(), text) > 0;
  };
  CHECK_FALSE(has("replace relu by a library call"));
  CHECK_FALSE(has("tensorize relu with tf32 tensor cores"));

  task.allow_library = true;
  task.allow_tf32 = true;
  task.device.dialect = kernel::Dialect::kCuda;

  CHECK(has("replace relu by a library call"));
  CHECK(has("tensorize relu with tf32 tensor cores"));
}

TEST_CASE("ListProgramActions offers only the repair after a failure", "[gateway]") {
  const auto [outcome, text] = GENERATE(table<Feedback::Outcome, std::string>({
      {Feedback::Outcome::kBuildFailed, "fix the build"},
      {Feedback::Outcome::kLaunchFailed, "fix the launch"},
      {Feedback::Outcome::kWrongResult, "fix the result"},
  }));

  CHECK(List(MakeTask(), kProgram, {.outcome = outcome}) == std::vector<std::string>{text, "stop"});
}

TEST_CASE("ListProgramActions offers a repair of a text that is no program", "[gateway]") {
  CHECK(List(MakeTask(), "nonsense") == std::vector<std::string>{"fix the build", "stop"});
}

}  // namespace
}  // namespace mtmc::gateway

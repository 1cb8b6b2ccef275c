// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/reply_parser.h"

#include <catch2/catch.hpp>

namespace mtmc::gateway {
namespace {

using Catch::Matchers::Contains;

const std::string kProgram =
    "//@ mtmc 1 opencl\n//@ output y f32[4]\n//@ launch f grid=1 block=4 args=(y)\n"
    "__kernel void f(__global float* y) { y[get_global_id(0)] = 1.0f; }\n";

std::string ReasonOf(const CodingResult& result) {
  const auto* failure = std::get_if<CoderFailure>(&result.outcome);
  return failure == nullptr ? "" : failure->reason;
}

TEST_CASE("ParseReply finds the program among what models write around it", "[gateway]") {
  const std::string reply = GENERATE_COPY(
      "```\n" + kProgram + "```", "Sure!\n\n```c\n" + kProgram + "```\nDone.",
      "~~~~opencl\n" + kProgram + "~~~~~\n",
      "```python\nx = 1\n```\n```\n" + kProgram + "```\n```\nmore\n```",
      "  ```\n" + kProgram + "  ```  \n",
      "<think>```\n//@ mtmc 1 cuda\nnot this\n```</think>\n```\n" + kProgram + "```", kProgram);
  CAPTURE(reply);

  const CodingResult result = ParseReply(reply, /*is_cut=*/false);

  CAPTURE(ReasonOf(result));
  REQUIRE(std::holds_alternative<CodedProgram>(result.outcome));
  CHECK(std::get<CodedProgram>(result.outcome).text == kProgram);
  CHECK(std::get<CodedProgram>(result.outcome).schedule.empty());
}

TEST_CASE("ParseReply keeps shorter fences inside a longer one", "[gateway]") {
  const CodingResult result =
      ParseReply("````\n" + kProgram + "/*\n```\n*/\n````\n", /*is_cut=*/false);

  REQUIRE(std::holds_alternative<CodedProgram>(result.outcome));
  CHECK_THAT(std::get<CodedProgram>(result.outcome).text, Contains("```"));
}

TEST_CASE("ParseReply refuses rubbish", "[gateway]") {
  const std::string reply =
      GENERATE_COPY(as<std::string>{}, "I cannot help with that.", "```\nint main() {}\n```",
                    "``` ```", "```\n" + kProgram, "```\n//@ mtmc 1 opencl\n//@ launch\n```",
                    "{\"error\": true}", std::string("\xff\xfe\x00\x01", 4),
                    "```\n//@ mtmc 1 opencl\n\xff```\n", std::string(100'000, '`'));
  CAPTURE(reply.substr(0, 100));

  CHECK(ReasonOf(ParseReply(reply, /*is_cut=*/false)) == "REPLY_NOT_PARSED");
}

TEST_CASE("ParseReply tells an empty reply from rubbish", "[gateway]") {
  const std::string reply = GENERATE("", " ", "\n\t\n");

  CHECK(ReasonOf(ParseReply(reply, /*is_cut=*/false)) == "REPLY_EMPTY");
  CHECK(ReasonOf(ParseReply(reply, /*is_cut=*/true)) == "REPLY_EMPTY");
}

TEST_CASE("ParseReply says when the token limit cut the program", "[gateway]") {
  for (const std::string& reply : {"```\n" + kProgram, kProgram}) {
    const CodingResult result = ParseReply(reply, /*is_cut=*/true);

    REQUIRE(ReasonOf(result) == "REPLY_NOT_PARSED");
    CHECK_THAT(std::get<CoderFailure>(result.outcome).message, Contains("cut at the token limit"));
  }
}

TEST_CASE("ParseReply names the wrong directive", "[gateway]") {
  const CodingResult result =
      ParseReply("```\n//@ mtmc 1 opencl\n//@ launch f grid=1 args=()\n```", /*is_cut=*/false);

  REQUIRE(ReasonOf(result) == "REPLY_NOT_PARSED");
  CHECK_THAT(std::get<CoderFailure>(result.outcome).message,
             Contains("line 2: a launch needs `block=`"));
}

}  // namespace
}  // namespace mtmc::gateway

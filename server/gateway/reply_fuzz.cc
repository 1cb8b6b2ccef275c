// SPDX-License-Identifier: Apache-2.0

// Any bytes may come from a model's server: as the HTTP body, and as the text
// of a reply. A program that is found parses again from its own fence.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "server/gateway/open_ai_chat_model.h"
#include "server/gateway/reply_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mtmc::gateway;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto reply = FromOpenAiJson(bytes);
  if (reply.ok()) ParseReply(reply->text, reply->is_cut);
  const CodingResult result = ParseReply(bytes, /*is_cut=*/false);
  const auto* program = std::get_if<CodedProgram>(&result.outcome);
  if (program == nullptr) {
    if (std::get<CoderFailure>(result.outcome).reason.empty()) std::abort();
    return 0;
  }
  // A program may name the end of reasoning in a comment; then it is cut again.
  if (program->text.find("</think>") != std::string::npos) return 0;
  // A fence longer than any run of backticks inside.
  const std::string fence(program->text.size() + 3, '`');
  const CodingResult again = ParseReply(fence + "\n" + program->text + fence, /*is_cut=*/false);
  const auto* same = std::get_if<CodedProgram>(&again.outcome);
  if (same == nullptr || same->text != program->text) std::abort();
  return 0;
}

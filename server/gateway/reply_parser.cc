// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/reply_parser.h"

#include <optional>
#include <utility>
#include <vector>

#include "kernel/graph/text.h"
#include "kernel/program/parser.h"

namespace mtmc::gateway {
namespace {

using kernel::Trim;

// Enough to see the first mistakes; the message is shown and stored.
constexpr size_t kMaxDiagnosticsBytes = 4000;

struct Block {
  std::string text;
  bool is_closed = false;
};

// The length of the run of backticks or tildes that opens or closes a fence; 0
// when the line is no fence.
size_t FenceLength(std::string_view line) {
  line = Trim(line);
  if (line.empty() || (line.front() != '`' && line.front() != '~')) return 0;
  const size_t length = std::min(line.find_first_not_of(line.front()), line.size());
  return length >= 3 ? length : 0;
}

// A closing fence is as long as the opening one and alone on its line.
bool Closes(std::string_view line, size_t opening) {
  const size_t length = FenceLength(line);
  return length >= opening && Trim(line).size() == length;
}

std::vector<Block> FindBlocks(std::string_view reply) {
  std::vector<Block> blocks;
  size_t opening = 0;
  while (!reply.empty()) {
    const size_t end = std::min(reply.find('\n'), reply.size());
    const std::string_view line = reply.substr(0, end);
    reply.remove_prefix(std::min(end + 1, reply.size()));
    if (opening > 0 && Closes(line, opening)) {
      blocks.back().is_closed = true;
      opening = 0;
    } else if (opening > 0) {
      kernel::Append(blocks.back().text, line, "\n");
    } else if (const size_t length = FenceLength(line); length > 0) {
      blocks.emplace_back();
      opening = length;
    }
  }
  return blocks;
}

// Whether the text has a line such as `//@ mtmc 1 cuda`.
bool HasHeader(std::string_view text) {
  for (const std::string_view line : kernel::Split(text, '\n')) {
    const std::string_view trimmed = Trim(line);
    for (const std::string_view mark : {"//@", "#@"}) {
      if (trimmed.substr(0, mark.size()) == mark &&
          Trim(trimmed.substr(mark.size())).substr(0, 4) == "mtmc") {
        return true;
      }
    }
  }
  return false;
}

std::optional<Block> FindProgram(std::string_view reply, bool is_cut) {
  std::optional<Block> program;
  for (Block& block : FindBlocks(reply)) {
    if (HasHeader(block.text)) program = std::move(block);
  }
  if (program) return program;
  const std::string_view bare = Trim(reply);
  const std::string_view first_line = bare.substr(0, bare.find('\n'));
  if (HasHeader(first_line)) return Block{.text = std::string(bare) + "\n", .is_closed = !is_cut};
  return std::nullopt;
}

// The reply without the reasoning that some servers leave in front of it.
std::string_view RemoveReasoning(std::string_view reply) {
  constexpr std::string_view kEnd = "</think>";
  const size_t at = reply.rfind(kEnd);
  return at == std::string_view::npos ? reply : reply.substr(at + kEnd.size());
}

CodingResult Fail(std::string reason, std::string message) {
  return {.outcome = CoderFailure{.reason = std::move(reason), .message = std::move(message)}};
}

}  // namespace

CodingResult ParseReply(std::string_view reply, bool is_cut) {
  reply = RemoveReasoning(reply);
  if (Trim(reply).empty()) {
    return Fail("REPLY_EMPTY", is_cut ? "the model used all its tokens before it answered"
                                      : "the model's reply is empty");
  }
  std::optional<Block> block = FindProgram(reply, is_cut);
  if (!block) {
    return Fail("REPLY_NOT_PARSED",
                is_cut ? "the reply was cut at its token limit before a program began"
                       : "the reply has no fenced block with an `mtmc` directive");
  }
  if (!block->is_closed) {
    return Fail("REPLY_NOT_PARSED", is_cut ? "the program was cut at the token limit"
                                           : "the block of the program is not closed");
  }
  const kernel::ParseResult parsed = kernel::ParseProgram(block->text);
  if (!parsed.program) {
    return Fail("REPLY_NOT_PARSED",
                "the program's plan is wrong: " +
                    kernel::ToText(parsed.diagnostics).substr(0, kMaxDiagnosticsBytes));
  }
  return {.outcome = CodedProgram{.text = std::move(block->text)}};
}

}  // namespace mtmc::gateway

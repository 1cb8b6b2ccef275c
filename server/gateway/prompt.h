// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/gateway/chat_model.h"
#include "server/gateway/micro_coder.h"

namespace mtmc::gateway {

// The conversation that asks for `program` with one action applied: the program
// format, the problem (source and traced operations), the device, the current
// program, its verdict, the action with its region, advice and a worked example
// of that type, and the rule of output (exactly one fenced program). Measured
// numbers stand in a volatile message. Parts that grow without bound (sources,
// logs) are cut in the middle.
std::vector<ChatMessage> MakeActionPrompt(const CodingTask& task, const CodedProgram& program,
                                          const CodingAction& action, const Feedback& feedback);

// The same for a first, simple and correct program.
std::vector<ChatMessage> MakeStartPrompt(const CodingTask& task);

// Upper estimate of what a tokenizer makes of the messages: code has three to
// four bytes per token.
int64_t EstimateTokens(const std::vector<ChatMessage>& messages);

}  // namespace mtmc::gateway

// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/builtin_coder.h"

#include <string_view>
#include <utility>

#include "kernel/engine/engine.h"
#include "kernel/graph/text.h"
#include "server/gateway/program_actions.h"

namespace mtmc::gateway {
namespace {

kernel::EngineOptions OptionsOf(const CodingTask& task) {
  return {.target = {.dialect = task.device.dialect,
                     .max_threads_per_block = task.device.max_threads_per_block,
                     .shared_bytes_per_block = task.device.shared_bytes_per_block,
                     .compute_units = task.device.compute_units,
                     .warp_size = task.device.warp_size,
                     .vector_bytes = task.device.vector_bytes,
                     .cache_bytes = task.device.cache_bytes},
          .allow_library = task.allow_library,
          .allow_tf32 = task.allow_tf32};
}

CodingResult Fail(std::string reason, std::string message) {
  return {.outcome = CoderFailure{.reason = std::move(reason), .message = std::move(message)}};
}

CodingAction ToCodingAction(kernel::EngineAction action) {
  return {.type = std::move(action.type),
          .kernels = std::move(action.kernels),
          .nodes = std::move(action.nodes),
          .first_line = action.first_line,
          .last_line = action.last_line,
          .arguments = std::move(action.arguments),
          .text = std::move(action.text)};
}

// The engine says by its status whether it cannot (a coder failure) or was
// asked nonsense (the caller's error).
absl::StatusOr<CodingResult> ToResult(absl::StatusOr<kernel::EngineProgram> program) {
  if (program.ok()) {
    return CodingResult{.outcome = CodedProgram{.text = std::move(program->text),
                                                .schedule = std::move(program->schedule)}};
  }
  const std::string message(program.status().message());
  switch (program.status().code()) {
    case absl::StatusCode::kNotFound:
      return Fail("ILLEGAL_ACTION", message);
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kFailedPrecondition:
      return Fail("UNSUPPORTED", message);
    default:
      return program.status();
  }
}

}  // namespace

absl::StatusOr<CodingResult> BuiltinCoder::CreateProgram(const CodingTask& task) {
  if (task.device.dialect == kernel::Dialect::kTriton) {
    return Fail("UNSUPPORTED", "the built-in coder writes opencl and cuda");
  }
  return ToResult(kernel::CreateProgram(task.graph, OptionsOf(task)));
}

absl::StatusOr<CodingResult> BuiltinCoder::ApplyAction(const CodingTask& task,
                                                       const CodedProgram& program,
                                                       const CodingAction& action,
                                                       const Feedback&) {
  if (program.schedule.empty()) {
    return Fail("UNSUPPORTED", "the program has no schedule; only coder `llm` can change it");
  }
  if (action.type == "stop") {
    return Fail("ILLEGAL_ACTION", "`stop` ends the search; it is nothing to apply");
  }
  // The search makes these two out of what it was offered and what it has measured.
  if (const auto steps = action.arguments.find("steps"); steps != action.arguments.end()) {
    std::vector<std::string> texts;
    for (const std::string_view text : kernel::Split(steps->second, '\n')) texts.emplace_back(text);
    return ToResult(kernel::ApplyTogether(task.graph, program.schedule, texts, OptionsOf(task)));
  }
  if (const auto mix = action.arguments.find("schedule"); mix != action.arguments.end()) {
    return ToResult(kernel::PrintSchedule(task.graph, mix->second, OptionsOf(task)));
  }
  return ToResult(kernel::ApplyAction(task.graph, program.schedule, action.text, OptionsOf(task)));
}

absl::StatusOr<std::vector<CodingAction>> BuiltinCoder::ListActions(const CodingTask& task,
                                                                    const CodedProgram& program,
                                                                    const Feedback& feedback) {
  if (program.schedule.empty()) return std::vector<CodingAction>{{.type = "stop", .text = "stop"}};
  const kernel::EngineOptions options = OptionsOf(task);
  absl::StatusOr<std::vector<kernel::EngineAction>> listed =
      kernel::ListActions(task.graph, program.schedule, options);
  if (!listed.ok()) return listed.status();
  std::vector<CodingAction> actions;
  // A program that failed is best answered by another one to start from.
  if (const char* repair = RepairFor(feedback.outcome)) {
    auto restarts = kernel::ListRestarts(task.graph, program.schedule, options);
    if (!restarts.ok()) return restarts.status();
    for (kernel::EngineAction& restart : *restarts) {
      restart.type = repair;
      actions.push_back(ToCodingAction(std::move(restart)));
    }
  }
  for (kernel::EngineAction& action : *listed) actions.push_back(ToCodingAction(std::move(action)));
  return actions;
}

}  // namespace mtmc::gateway

// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/prompt.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "kernel/graph/listing.h"
#include "kernel/graph/text.h"
#include "kernel/program/interface.h"
#include "kernel/program/printer.h"
#include "server/gateway/worked_examples.h"

namespace mtmc::gateway {
namespace {

using kernel::Append;
using kernel::Concat;

// 32 KiB are about 10,000 tokens, more than any KernelBench source or program
// the engine prints; a compiler log says what matters in its first and last lines.
constexpr size_t kMaxSourceBytes = 32 * 1024;
constexpr size_t kMaxProgramBytes = 128 * 1024;
constexpr size_t kMaxFeedbackBytes = 8 * 1024;

constexpr std::string_view kRules =
    R"(You write GPU programs in the mtmc program format: one text with device source and a launch plan in directive comments. There is no host code.

Directives, one per line, all at the top:
//@ mtmc 1 DIALECT            first line; DIALECT is opencl or cuda
//@ input NAME TYPE           forward argument, read only
//@ weight NAME TYPE          parameter, model buffer or constant, read only
//@ buffer NAME TYPE          scratch between steps
//@ output NAME TYPE          must be written completely
//@ tune NAME = V1 V2 ; ...   the worker tries all values; NAME is a macro in the source
//@ launch KERNEL grid=(X, Y, Z) block=(X, Y, Z) shared=BYTES args=(...)
//@ call aten::op(args) -> result    library call, only where allowed
//@ capture                   run the plan as one recorded graph

TYPE is an element type f64 f32 f16 bf16 i64 i32 i16 i8 u8 bool with a shape, such as f32[16,4096]. Tensors are dense and row-major. grid counts blocks (work-groups), block counts threads of one. Dimensions, shared and integer arguments are expressions of integers, tune names, + - * / %, min, max, ceil_div. shared= exists in cuda only. A tensor argument is passed as a pointer to its elements; real arguments have a decimal point.

Kernels: `extern "C" __global__ void name(...)` in cuda, `__kernel void name(...)` in opencl (OpenCL C 1.2). No templates as kernels, no references, no pointers to pointers. Pointers to inputs and weights are const. Every kernel is launched. Steps run in order and see each other's results. Do not use atomics where their order changes the result. Never skip work, cache results, or rely on values of the inputs.)";

constexpr std::string_view kOutputRule =
    "Reply with exactly one fenced code block that holds the complete new program, directives "
    "first. "
    "No other code block. Explanations, if any, in at most three sentences before it.";

// The text with its middle left out when it is too long.
std::string Shorten(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  return Concat(text.substr(0, limit / 2), "\n[... ", text.size() - limit, " bytes left out ...]\n",
                text.substr(text.size() - limit / 2));
}

std::string Fenced(std::string_view language, std::string_view text) {
  const bool ends_line = !text.empty() && text.back() == '\n';
  return Concat("```", language, "\n", text, ends_line ? "" : "\n", "```\n");
}

// The directives that bind a program to the problem.
std::string InterfaceText(const CodingTask& task) {
  kernel::Program program{.dialect = task.device.dialect};
  const kernel::ProgramInterface interface = kernel::FromGraph(task.graph);
  program.tensors = interface.inputs;
  program.tensors.insert(program.tensors.end(), interface.outputs.begin(), interface.outputs.end());
  return kernel::PrintDirectives(program);
}

std::string TaskText(const CodingTask& task) {
  std::string text = "# Problem\n\nPyTorch reference:\n";
  Append(text, Fenced("python", Shorten(task.graph.source, kMaxSourceBytes)));
  Append(text, "\nTraced operations:\n",
         Fenced("", Shorten(kernel::ListGraph(task.graph), kMaxSourceBytes)));
  Append(text, "\nThe program binds to these names and types:\n", Fenced("", InterfaceText(task)));
  Append(text, "\n# Conditions\n\nDialect: ", kernel::ToText(task.device.dialect), "\n",
         "Precision class: ", task.precision, "\n",
         "Library calls: ", task.allow_library ? "allowed" : "not allowed", "\n", task.device.text);
  return text;
}

std::string SourceLines(const CodingTask& task, const CodingAction& action) {
  if (action.first_line <= 0) return "";
  const std::vector<std::string_view> lines = kernel::Split(task.graph.source, '\n');
  std::string text;
  const size_t last =
      std::min(static_cast<size_t>(std::max(action.last_line, action.first_line)), lines.size());
  for (size_t line = static_cast<size_t>(action.first_line); line <= last; ++line) {
    Append(text, line, ": ", lines[line - 1], "\n");
  }
  return text;
}

std::string ActionText(const CodingTask& task, const CodingAction& action) {
  std::string text =
      Concat("# The one action to apply\n\n", action.text, "\n\nType: ", action.type, "\n");
  if (!action.kernels.empty()) Append(text, "Kernels: ", kernel::Join(action.kernels, ", "), "\n");
  if (!action.nodes.empty()) Append(text, "Operations: ", kernel::Join(action.nodes, ", "), "\n");
  for (const auto& [name, value] : action.arguments) Append(text, name, ": ", value, "\n");
  const std::string lines = SourceLines(task, action);
  if (!lines.empty())
    Append(text, "Lines of the reference:\n", Fenced("python", Shorten(lines, kMaxFeedbackBytes)));
  const WorkedExample example = FindWorkedExample(action.type, task.device.dialect);
  Append(text, "\nHow: ", example.advice, "\n");
  if (!example.program.empty()) {
    Append(text, "\nA worked example of another problem:\n", Fenced("", example.program));
  }
  Append(text, "\nDo this one action and nothing else. Keep what works.\n\n", kOutputRule, "\n");
  return text;
}

std::string FeedbackText(const Feedback& feedback) {
  if (feedback.text.empty()) return "The program has not been evaluated.\n";
  return Concat("Its last evaluation:\n", Fenced("", Shorten(feedback.text, kMaxFeedbackBytes)));
}

}  // namespace

std::vector<ChatMessage> MakeActionPrompt(const CodingTask& task, const CodedProgram& program,
                                          const CodingAction& action, const Feedback& feedback) {
  std::vector<ChatMessage> messages;
  messages.push_back({.role = ChatMessage::Role::kSystem, .text = std::string(kRules)});
  messages.push_back({.text = TaskText(task)});
  messages.push_back(
      {.text = Concat("# Current program\n\n", Fenced("", Shorten(program.text, kMaxProgramBytes)),
                      "\n", FeedbackText(feedback))});
  if (!feedback.measured_text.empty()) {
    messages.push_back({.text = Concat("Measured:\n", Fenced("", Shorten(feedback.measured_text,
                                                                         kMaxFeedbackBytes))),
                        .is_volatile = true});
  }
  messages.push_back({.text = ActionText(task, action)});
  return messages;
}

std::vector<ChatMessage> MakeStartPrompt(const CodingTask& task) {
  std::string ask =
      "# What to do\n\nWrite a first program for this problem: simple and certainly correct, one "
      "kernel per "
      "operation, no optimization. Cover every shape edge.\n";
  const WorkedExample example = FindWorkedExample("reorder", task.device.dialect);
  Append(ask, "\nA program of another problem, for the form:\n", Fenced("", example.program), "\n",
         kOutputRule, "\n");
  return {{.role = ChatMessage::Role::kSystem, .text = std::string(kRules)},
          {.text = TaskText(task)},
          {.text = std::move(ask)}};
}

int64_t EstimateTokens(const std::vector<ChatMessage>& messages) {
  size_t bytes = 0;
  for (const ChatMessage& message : messages) bytes += message.text.size() + 16;
  return static_cast<int64_t>(bytes / 3) + 1;
}

}  // namespace mtmc::gateway

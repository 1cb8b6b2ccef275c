// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/program_actions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "kernel/graph/text.h"
#include "kernel/program/parser.h"
#include "kernel/program/signature.h"

namespace mtmc::gateway {
namespace {

using kernel::Concat;
using kernel::KernelSignature;
using kernel::Launch;
using kernel::LibraryCall;

// A step of the plan by what it reads and writes.
struct StepFlow {
  std::string name;
  bool is_launch = false;
  std::set<std::string> reads;
  std::set<std::string> writes;
};

void CollectReads(const kernel::CallArgument& argument, std::set<std::string>& reads) {
  if (const auto* tensor = std::get_if<kernel::CallArgument::TensorName>(&argument.value)) {
    reads.insert(tensor->name);
  }
  if (const auto* list = std::get_if<std::vector<kernel::CallArgument>>(&argument.value)) {
    for (const kernel::CallArgument& element : *list) CollectReads(element, reads);
  }
}

StepFlow FlowOf(const LibraryCall& call) {
  StepFlow flow{.name = call.op, .writes = {call.results.begin(), call.results.end()}};
  for (const kernel::CallArgument& argument : call.arguments) CollectReads(argument, flow.reads);
  return flow;
}

StepFlow FlowOf(const Launch& launch, const std::map<std::string, KernelSignature>& kernels) {
  StepFlow flow{.name = launch.kernel, .is_launch = true};
  const auto kernel = kernels.find(launch.kernel);
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const auto* tensor = std::get_if<std::string>(&launch.arguments[i].value);
    if (tensor == nullptr) continue;
    const bool is_known = kernel != kernels.end() && i < kernel->second.parameters.size();
    const bool is_const = is_known && kernel->second.parameters[i].is_const;
    (is_const ? flow.reads : flow.writes).insert(*tensor);
  }
  return flow;
}

std::vector<StepFlow> FlowOf(const kernel::Program& program) {
  std::map<std::string, KernelSignature> kernels;
  if (program.dialect != kernel::Dialect::kTriton) {
    for (KernelSignature& kernel : kernel::FindKernels(program.text, program.dialect).kernels) {
      std::string name = kernel.name;
      kernels.emplace(std::move(name), std::move(kernel));
    }
  }
  std::vector<StepFlow> steps;
  for (const kernel::Step& step : program.steps) {
    const auto* launch = std::get_if<Launch>(&step);
    steps.push_back(launch ? FlowOf(*launch, kernels) : FlowOf(std::get<LibraryCall>(step)));
  }
  return steps;
}

bool Intersects(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const std::string& name) { return b.count(name) > 0; });
}

// Collects actions; each text is kept once.
class ActionList {
 public:
  void Add(const std::string& type, std::vector<std::string> kernels, const std::string& text) {
    if (!texts_.insert(text).second) return;
    actions_.push_back({.type = type, .kernels = std::move(kernels), .text = text});
  }

  std::vector<CodingAction> Finish() {
    Add("stop", {}, "stop");
    return std::move(actions_);
  }

 private:
  std::set<std::string> texts_;
  std::vector<CodingAction> actions_;
};

void AddKernelActions(const CodingTask& task, const std::string& kernel, ActionList& actions) {
  actions.Add("tile", {kernel},
              Concat("tile ", kernel, " into blocks of threads with local staging"));
  actions.Add("vectorize", {kernel}, Concat("vectorize loads and stores of ", kernel));
  actions.Add("reorder", {kernel}, Concat("reorder loops and thread mapping of ", kernel));
  actions.Add("split", {kernel}, Concat("split the reduction of ", kernel, " over more blocks"));
  actions.Add("tune", {kernel}, Concat("tune block and tile sizes of ", kernel));
  actions.Add("simplify", {kernel}, Concat("simplify the algebra of ", kernel));
  if (task.device.dialect == kernel::Dialect::kCuda) {
    actions.Add("pipeline", {kernel},
                Concat("pipeline loads of ", kernel, " with asynchronous copies"));
    if (task.allow_tf32) {
      actions.Add("tensorize", {kernel}, Concat("tensorize ", kernel, " with tf32 tensor cores"));
    }
  }
  if (task.allow_library) {
    actions.Add("library", {kernel}, Concat("replace ", kernel, " by a library call"));
  }
}

void AddFusions(const std::vector<StepFlow>& steps, ActionList& actions) {
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const StepFlow& first = steps[i];
    const StepFlow& second = steps[i + 1];
    if (!first.is_launch && !second.is_launch) continue;
    // Neighbours that share nothing gain little from standing in one kernel.
    if (!Intersects(first.writes, second.reads) && !Intersects(first.reads, second.reads)) continue;
    actions.Add("fuse", {first.name, second.name},
                Concat("fuse ", first.name, " and ", second.name));
  }
}

std::string RepairText(const std::string& repair) {
  if (repair == "fix_build") return "fix the build";
  if (repair == "fix_launch") return "fix the launch";
  return "fix the result";
}

}  // namespace

const char* RepairFor(Feedback::Outcome outcome) {
  switch (outcome) {
    case Feedback::Outcome::kBuildFailed:
      return "fix_build";
    case Feedback::Outcome::kLaunchFailed:
      return "fix_launch";
    case Feedback::Outcome::kWrongResult:
      return "fix_result";
    default:
      return nullptr;
  }
}

std::vector<CodingAction> ListProgramActions(const CodingTask& task, const std::string& program,
                                             const Feedback& feedback) {
  ActionList actions;
  if (const char* repair = RepairFor(feedback.outcome)) {
    actions.Add(repair, {}, RepairText(repair));
    return actions.Finish();
  }
  const kernel::ParseResult parsed = kernel::ParseProgram(program);
  if (!parsed.program) {
    actions.Add("fix_build", {}, RepairText("fix_build"));
    return actions.Finish();
  }
  const std::vector<StepFlow> steps = FlowOf(*parsed.program);
  AddFusions(steps, actions);
  for (const StepFlow& step : steps) {
    if (step.is_launch) AddKernelActions(task, step.name, actions);
  }
  if (!parsed.program->has_capture && steps.size() > 1) {
    actions.Add("capture", {}, "capture the whole plan as one graph");
  }
  return actions.Finish();
}

}  // namespace mtmc::gateway

// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/plan_reads.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// What one step does to tensors.
struct StepAccess {
  std::vector<std::string> reads;
  std::vector<std::string> writes;
  // Tensors that are passed and not used, with the reason.
  std::map<std::string, std::string> ignored;
};

StepAccess AccessOf(const Launch& launch, const KernelsByName& kernels) {
  StepAccess access;
  const auto kernel = kernels.find(launch.kernel);
  const bool is_known =
      kernel != kernels.end() && kernel->second.parameters.size() == launch.arguments.size();
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const auto* name = std::get_if<std::string>(&launch.arguments[i].value);
    if (name == nullptr) continue;
    const KernelParameter* parameter = is_known ? &kernel->second.parameters[i] : nullptr;
    if (parameter != nullptr && !parameter->is_used) {
      access.ignored[*name] =
          Concat("`", launch.kernel, "` never uses its parameter `", parameter->name, "`");
      continue;
    }
    access.reads.push_back(*name);
    if (parameter == nullptr || !parameter->is_const) access.writes.push_back(*name);
  }
  return access;
}

void AddTensors(const CallArgument& argument, StepAccess& access) {
  if (const auto* elements = std::get_if<std::vector<CallArgument>>(&argument.value)) {
    for (const CallArgument& element : *elements) AddTensors(element, access);
  }
  const auto* tensor = std::get_if<CallArgument::TensorName>(&argument.value);
  if (tensor == nullptr) return;
  (argument.keyword == "out" ? access.writes : access.reads).push_back(tensor->name);
}

StepAccess AccessOf(const LibraryCall& call) {
  StepAccess access;
  for (const CallArgument& argument : call.arguments) AddTensors(argument, access);
  access.writes.insert(access.writes.end(), call.results.begin(), call.results.end());
  return access;
}

}  // namespace

PlanReads FindReads(const Program& program, const KernelsByName& kernels) {
  // Tensors whose content reaches an output after the current step.
  std::set<std::string, std::less<>> live;
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role == Tensor::Role::kOutput) live.insert(tensor.name);
  }
  PlanReads result;
  for (auto step = program.steps.rbegin(); step != program.steps.rend(); ++step) {
    const auto* launch = std::get_if<Launch>(&*step);
    StepAccess access =
        launch != nullptr ? AccessOf(*launch, kernels) : AccessOf(std::get<LibraryCall>(*step));
    const bool is_live = std::any_of(access.writes.begin(), access.writes.end(),
                                     [&](const std::string& name) { return live.count(name) > 0; });
    for (std::string& name : access.reads) {
      if (is_live) {
        live.insert(name);
        result.read.insert(std::move(name));
      } else {
        result.unread.emplace(std::move(name), "is read only by steps that reach no output");
      }
    }
    for (auto& [name, reason] : access.ignored) result.unread.emplace(name, std::move(reason));
  }
  for (const std::string& name : result.read) result.unread.erase(name);
  return result;
}

}  // namespace mtmc::kernel

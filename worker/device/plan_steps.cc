// SPDX-License-Identifier: Apache-2.0
#include "worker/device/plan_steps.h"

#include <map>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernel/program/signature.h"
#include "worker/device/scalar_argument.h"

namespace mtmc::worker {
namespace {

Failure CheckFailure(int line, const std::string& message) {
  return {.kind = Failure::Kind::kCheck, .message = absl::StrCat("line ", line, ": ", message)};
}

const kernel::KernelSignature* FindSignature(const kernel::KernelScan& scan,
                                             const std::string& kernel) {
  for (const kernel::KernelSignature& signature : scan.kernels) {
    if (signature.name == kernel) return &signature;
  }
  return nullptr;
}

// Adds the names of all tensors in `arguments`.
void CollectTensors(const std::vector<kernel::CallArgument>& arguments,
                    std::vector<std::string>& names) {
  for (const kernel::CallArgument& argument : arguments) {
    if (const auto* tensor = std::get_if<kernel::CallArgument::TensorName>(&argument.value)) {
      names.push_back(tensor->name);
    } else if (const auto* list = std::get_if<std::vector<kernel::CallArgument>>(&argument.value)) {
      CollectTensors(*list, names);
    }
  }
}

// What one launch becomes, argument by argument.
class LaunchBuilder {
 public:
  LaunchBuilder(const kernel::Launch& launch, const kernel::Bindings& bindings,
                PlanTensors& tensors)
      : launch_(launch), bindings_(bindings), tensors_(tensors) {}

  Outcome<PlanStep> Build(const kernel::KernelScan& scan, Module& module) {
    const kernel::KernelSignature* signature = FindSignature(scan, launch_.kernel);
    command_.kernel = module.Find(launch_.kernel);
    if (!signature) return Fail(absl::StrCat("the source has no kernel '", launch_.kernel, "'"));
    if (!command_.kernel) {
      return Fail(absl::StrCat("kernel '", launch_.kernel,
                               "' stands in the source and is missing in the binary: a built-in "
                               "function or a macro may have that name; rename the kernel"));
    }
    if (signature->parameters.size() != launch_.arguments.size()) {
      return Fail(absl::StrCat("kernel '", launch_.kernel, "' takes ", signature->parameters.size(),
                               " arguments, not ", launch_.arguments.size()));
    }
    if (MaybeFailure failure = SetGeometry()) return *std::move(failure);
    for (size_t i = 0; i < launch_.arguments.size(); ++i) {
      if (MaybeFailure failure = AddArgument(i, signature->parameters[i])) {
        return *std::move(failure);
      }
    }
    step_.launch = std::move(command_);
    return std::move(step_);
  }

 private:
  Failure Fail(const std::string& message) const { return CheckFailure(launch_.line, message); }

  MaybeFailure Evaluate(const kernel::IntegerExpression& expression, int64_t& value) const {
    auto result = expression.Evaluate(bindings_);
    if (!result.ok()) return Fail(std::string(result.status().message()));
    value = *result;
    return std::nullopt;
  }

  MaybeFailure SetGeometry() {
    for (size_t axis = 0; axis < 3; ++axis) {
      if (MaybeFailure failure = Evaluate(launch_.grid[axis], command_.grid[axis])) return failure;
      if (MaybeFailure failure = Evaluate(launch_.block[axis], command_.block[axis])) {
        return failure;
      }
      if (command_.grid[axis] < 1 || command_.block[axis] < 1) {
        return Fail("grid and block must be at least 1");
      }
    }
    return Evaluate(launch_.shared_bytes, command_.shared_bytes);
  }

  MaybeFailure AddArgument(size_t index, const kernel::KernelParameter& parameter) {
    const auto& value = launch_.arguments[index].value;
    if (const std::string* name = std::get_if<std::string>(&value)) {
      PlanTensor* tensor = tensors_.Find(*name);
      if (!tensor || !parameter.is_pointer) {
        return Fail(absl::StrCat("argument ", index + 1, " ('", *name,
                                 "') does not fit parameter '", parameter.name, "'"));
      }
      command_.arguments.emplace_back(static_cast<const Buffer*>(nullptr));
      step_.tensors.push_back(tensor);
      return std::nullopt;
    }
    std::variant<int64_t, double> number;
    if (const auto* expression = std::get_if<kernel::IntegerExpression>(&value)) {
      int64_t integer = 0;
      if (MaybeFailure failure = Evaluate(*expression, integer)) return failure;
      number = integer;
    } else {
      number = std::get<double>(value);
    }
    const auto type = kernel::FindScalarType(parameter.type);
    const auto scalar = type && !parameter.is_pointer ? MakeScalar(*type, number) : std::nullopt;
    if (!scalar) {
      return Fail(absl::StrCat("argument ", index + 1, " does not fit parameter '", parameter.type,
                               " ", parameter.name, "'"));
    }
    command_.arguments.emplace_back(*scalar);
    step_.tensors.push_back(nullptr);
    return std::nullopt;
  }

  const kernel::Launch& launch_;
  const kernel::Bindings& bindings_;
  PlanTensors& tensors_;
  LaunchCommand command_;
  PlanStep step_;
};

// A tensor gets memory of its own unless a call binds it before any other use.
void MarkOwned(const kernel::Program& program, const std::vector<PlanStep>& steps,
               PlanTensors& tensors) {
  std::map<std::string, bool, std::less<>> is_bound;
  auto use = [&](PlanTensor& tensor) {
    if (!is_bound[tensor.tensor->name]) tensor.is_owned = true;
  };
  for (const PlanStep& step : steps) {
    for (PlanTensor* tensor : step.tensors) {
      if (tensor) use(*tensor);
    }
    if (!step.call) continue;
    std::vector<std::string> names;
    CollectTensors(step.call->arguments, names);
    for (const std::string& name : names) {
      if (PlanTensor* tensor = tensors.Find(name)) use(*tensor);
    }
    for (const std::string& name : step.call->results) is_bound[name] = true;
  }
  for (const kernel::Tensor& tensor : program.tensors) use(*tensors.Find(tensor.name));
}

}  // namespace

Outcome<std::vector<PlanStep>> PrepareSteps(const kernel::Program& program,
                                            const kernel::Bindings& bindings, Module& module,
                                            PlanTensors& tensors) {
  const kernel::KernelScan scan = kernel::FindKernels(program.text, program.dialect);
  std::vector<PlanStep> steps;
  for (const kernel::Step& step : program.steps) {
    if (const auto* call = std::get_if<kernel::LibraryCall>(&step)) {
      steps.push_back({.call = call});
      continue;
    }
    LaunchBuilder builder(std::get<kernel::Launch>(step), bindings, tensors);
    auto built = builder.Build(scan, module);
    if (!built.ok()) return built.failure();
    steps.push_back(*std::move(built));
  }
  MarkOwned(program, steps, tensors);
  return steps;
}

}  // namespace mtmc::worker

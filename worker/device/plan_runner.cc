// SPDX-License-Identifier: Apache-2.0
#include "worker/device/plan_runner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "kernel/program/signature.h"
#include "worker/device/scalar_argument.h"

namespace mtmc::worker {
namespace {

Failure CheckFailure(int line, const std::string& message) {
  return {.kind = Failure::Kind::kCheck, .message = absl::StrCat("line ", line, ": ", message)};
}

bool IsReadOnly(const kernel::Tensor& tensor) {
  return tensor.role == kernel::Tensor::Role::kInput ||
         tensor.role == kernel::Tensor::Role::kWeight;
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

}  // namespace

// A tensor of the plan and where its bytes are now.
struct PlanRunner::Slot {
  const kernel::Tensor* tensor = nullptr;
  // Some step uses the tensor before a call binds it.
  bool is_owned = false;
  std::unique_ptr<Buffer> own;
  // Set by a call during a run: the library's storage and a view of it.
  std::unique_ptr<LibraryTensor> library;
  std::unique_ptr<Buffer> view;
  // Copy of `view` that other processes may read.
  std::unique_ptr<Buffer> published;
  // Of an input, after it was placed.
  uint64_t checksum = 0;

  const Buffer* current() const { return view ? view.get() : own.get(); }
};

struct PlanRunner::PreparedStep {
  // Set for a launch; buffers are filled in before each enqueue.
  std::optional<LaunchCommand> launch;
  // Parallel to the launch's arguments; null for a scalar.
  std::vector<Slot*> slots;
  const kernel::LibraryCall* call = nullptr;
};

PlanRunner::PlanRunner(Device& device, Library* library, Options options)
    : device_(device), library_(library), options_(std::move(options)) {}

PlanRunner::~PlanRunner() = default;

Outcome<std::unique_ptr<PlanRunner>> PlanRunner::Create(Device& device, Library* library,
                                                        Options options) {
  std::unique_ptr<PlanRunner> runner(new PlanRunner(device, library, std::move(options)));
  if (MaybeFailure failure = runner->Prepare()) return *std::move(failure);
  return runner;
}

MaybeFailure PlanRunner::Prepare() {
  auto module = device_.Load(options_.binary);
  if (!module.ok()) return module.failure();
  module_ = *std::move(module);
  for (const kernel::Tensor& tensor : options_.program.tensors) {
    auto slot = std::make_unique<Slot>();
    slot->tensor = &tensor;
    slots_[tensor.name] = std::move(slot);
  }
  const kernel::KernelScan scan =
      kernel::FindKernels(options_.program.text, options_.program.dialect);
  for (const kernel::Step& step : options_.program.steps) {
    PreparedStep prepared;
    if (const auto* launch = std::get_if<kernel::Launch>(&step)) {
      if (MaybeFailure failure = PrepareLaunch(*launch, scan, prepared)) return failure;
    } else {
      prepared.call = &std::get<kernel::LibraryCall>(step);
      has_calls_ = true;
      if (!library_) {
        return Failure{.kind = Failure::Kind::kLibrary,
                       .message = "this worker has no library calls"};
      }
      if (std::find(options_.allowed_calls.begin(), options_.allowed_calls.end(),
                    prepared.call->op) == options_.allowed_calls.end()) {
        return Failure{.kind = Failure::Kind::kLibrary,
                       .message = absl::StrCat("line ", prepared.call->line, ": '",
                                               prepared.call->op, "' is not an allowed call")};
      }
    }
    steps_.push_back(std::move(prepared));
  }
  MarkOwned();
  return std::nullopt;
}

MaybeFailure PlanRunner::PrepareLaunch(const kernel::Launch& launch, const kernel::KernelScan& scan,
                                       PreparedStep& prepared) {
  const kernel::KernelSignature* signature = FindSignature(scan, launch.kernel);
  LaunchCommand command;
  command.kernel = module_->Find(launch.kernel);
  if (!signature || !command.kernel) {
    return CheckFailure(launch.line,
                        absl::StrCat("the source has no kernel '", launch.kernel, "'"));
  }
  if (signature->parameters.size() != launch.arguments.size()) {
    return CheckFailure(launch.line, absl::StrCat("kernel '", launch.kernel, "' takes ",
                                                  signature->parameters.size(), " arguments, not ",
                                                  launch.arguments.size()));
  }
  auto evaluate = [&](const kernel::IntegerExpression& expression, int64_t& value) -> MaybeFailure {
    auto result = expression.Evaluate(options_.bindings);
    if (!result.ok()) return CheckFailure(launch.line, std::string(result.status().message()));
    value = *result;
    return std::nullopt;
  };
  for (size_t axis = 0; axis < 3; ++axis) {
    if (MaybeFailure failure = evaluate(launch.grid[axis], command.grid[axis])) return failure;
    if (MaybeFailure failure = evaluate(launch.block[axis], command.block[axis])) return failure;
    if (command.grid[axis] < 1 || command.block[axis] < 1) {
      return CheckFailure(launch.line, "grid and block must be at least 1");
    }
  }
  if (MaybeFailure failure = evaluate(launch.shared_bytes, command.shared_bytes)) return failure;

  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const auto& value = launch.arguments[i].value;
    const kernel::KernelParameter& parameter = signature->parameters[i];
    if (const std::string* name = std::get_if<std::string>(&value)) {
      auto slot = slots_.find(*name);
      if (slot == slots_.end() || !parameter.is_pointer) {
        return CheckFailure(launch.line,
                            absl::StrCat("argument ", i + 1, " ('", *name,
                                         "') does not fit parameter '", parameter.name, "'"));
      }
      command.arguments.emplace_back(static_cast<const Buffer*>(nullptr));
      prepared.slots.push_back(slot->second.get());
      continue;
    }
    std::variant<int64_t, double> number;
    if (const auto* expression = std::get_if<kernel::IntegerExpression>(&value)) {
      int64_t integer = 0;
      if (MaybeFailure failure = evaluate(*expression, integer)) return failure;
      number = integer;
    } else {
      number = std::get<double>(value);
    }
    const auto type = kernel::FindScalarType(parameter.type);
    const auto scalar = type && !parameter.is_pointer ? MakeScalar(*type, number) : std::nullopt;
    if (!scalar) {
      return CheckFailure(launch.line, absl::StrCat("argument ", i + 1, " does not fit parameter '",
                                                    parameter.type, " ", parameter.name, "'"));
    }
    command.arguments.emplace_back(*scalar);
    prepared.slots.push_back(nullptr);
  }
  prepared.launch = std::move(command);
  return std::nullopt;
}

// A tensor gets memory of its own unless a call binds it before any other use.
void PlanRunner::MarkOwned() {
  std::map<std::string, bool, std::less<>> is_bound;
  auto use = [&](Slot& slot) {
    if (!is_bound[slot.tensor->name]) slot.is_owned = true;
  };
  for (const PreparedStep& step : steps_) {
    for (Slot* slot : step.slots) {
      if (slot) use(*slot);
    }
    if (!step.call) continue;
    std::vector<std::string> names;
    CollectTensors(step.call->arguments, names);
    for (const std::string& name : names) {
      if (auto slot = slots_.find(name); slot != slots_.end()) use(*slot->second);
    }
    for (const std::string& name : step.call->results) is_bound[name] = true;
  }
  for (auto& [name, slot] : slots_) {
    if (!is_bound[name]) slot->is_owned = true;
  }
}

MaybeFailure PlanRunner::Execute(const std::map<std::string, InputSource, std::less<>>& inputs,
                                 uint8_t poison) {
  is_executed_ = false;
  graph_.reset();
  if (MaybeFailure failure = PlaceInputs(inputs, poison)) return failure;
  if (MaybeFailure failure = Poison(poison)) return failure;
  if (MaybeFailure failure = RunAll()) return failure;
  if (options_.program.has_capture) {
    // The first run let libraries choose and allocate; what is verified is the
    // replay of the graph, because that is what will be timed.
    if (MaybeFailure failure = device_.Synchronize()) return failure;
    if (MaybeFailure failure = Poison(poison)) return failure;
    const Body body = [this] { return RunAll(); };
    auto graph = has_calls_ ? library_->Capture(body) : device_.Capture(body);
    if (!graph.ok()) return graph.failure();
    graph_ = *std::move(graph);
    if (MaybeFailure failure = graph_->Enqueue()) return failure;
  }
  if (MaybeFailure failure = device_.Synchronize()) return failure;
  is_executed_ = true;
  return CheckMemory();
}

MaybeFailure PlanRunner::PlaceInputs(const std::map<std::string, InputSource, std::less<>>& inputs,
                                     uint8_t poison) {
  poison_ = poison;
  // Old inputs live until all new ones are allocated, so that no address repeats.
  std::vector<std::unique_ptr<Buffer>> old;
  for (auto& [name, slot] : slots_) {
    if (!IsReadOnly(*slot->tensor)) continue;
    auto source = inputs.find(name);
    if (source == inputs.end()) {
      return CheckFailure(slot->tensor->line, absl::StrCat("there is no input '", name, "'"));
    }
    if (slot->own) old.push_back(std::move(slot->own));
    auto buffer = device_.Allocate(slot->tensor->type.bytes());
    if (!buffer.ok() && !old.empty()) {
      old.clear();
      buffer = device_.Allocate(slot->tensor->type.bytes());
    }
    if (!buffer.ok()) return buffer.failure();
    slot->own = *std::move(buffer);
    if (MaybeFailure failure = slot->own->Fill(poison)) return failure;
    if (const auto* bytes = std::get_if<std::span<const std::byte>>(&source->second)) {
      if (bytes->size() != static_cast<size_t>(slot->tensor->type.bytes())) {
        return CheckFailure(slot->tensor->line,
                            absl::StrCat("input '", name, "' has ", bytes->size(), " bytes, not ",
                                         slot->tensor->type.bytes()));
      }
      if (MaybeFailure failure = slot->own->Upload(*bytes)) return failure;
    } else if (MaybeFailure failure = slot->own->CopyFrom(std::get<PeerMemory>(source->second))) {
      return failure;
    }
    auto checksum = slot->own->Checksum();
    if (!checksum.ok()) return checksum.failure();
    slot->checksum = *checksum;
  }
  return std::nullopt;
}

MaybeFailure PlanRunner::Poison(uint8_t poison) {
  for (auto& [name, slot] : slots_) {
    slot->published.reset();
    if (IsReadOnly(*slot->tensor)) continue;
    slot->view.reset();
    slot->library.reset();
    if (!slot->is_owned) continue;
    if (!slot->own) {
      auto buffer = device_.Allocate(slot->tensor->type.bytes());
      if (!buffer.ok()) return buffer.failure();
      slot->own = *std::move(buffer);
    }
    if (MaybeFailure failure = slot->own->Fill(poison)) return failure;
  }
  return std::nullopt;
}

MaybeFailure PlanRunner::RunAll() {
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (MaybeFailure failure = RunStep(i)) return failure;
  }
  return std::nullopt;
}

MaybeFailure PlanRunner::RunStep(size_t index) {
  PreparedStep& step = steps_[index];
  if (index == 0) {
    // Results of the previous run are dropped before the first step, so that a
    // library can take the same memory again.
    for (auto& [name, slot] : slots_) {
      slot->view.reset();
      slot->library.reset();
    }
  }
  if (step.call) return RunCall(*step.call);
  for (size_t i = 0; i < step.slots.size(); ++i) {
    if (step.slots[i]) step.launch->arguments[i] = step.slots[i]->current();
  }
  return device_.Enqueue(*step.launch);
}

MaybeFailure PlanRunner::RunCall(const kernel::LibraryCall& call) {
  if (!library_->is_stream_ordered()) {
    if (MaybeFailure failure = device_.Synchronize()) return failure;
  }
  auto find = [this](std::string_view name) -> LibraryOperand {
    auto slot = slots_.find(name);
    if (slot == slots_.end() || !slot->second->current()) return {};
    return {slot->second->current()->address(), slot->second->tensor->type};
  };
  auto results = library_->Call(call, find);
  if (!results.ok()) return results.failure();
  auto library_failure = [&](const std::string& message) {
    return Failure{.kind = Failure::Kind::kLibrary,
                   .message = absl::StrCat("line ", call.line, ": ", message)};
  };
  if (results->size() < call.results.size()) {
    return library_failure(
        absl::StrCat(call.op, " has ", results->size(), " results, not ", call.results.size()));
  }
  for (size_t i = 0; i < call.results.size(); ++i) {
    const std::string& name = call.results[i];
    if (name == "_") continue;
    auto slot = slots_.find(name);
    std::unique_ptr<LibraryTensor>& result = (*results)[i];
    if (slot == slots_.end() || IsReadOnly(*slot->second->tensor)) {
      return library_failure(absl::StrCat("'", name, "' cannot take a result"));
    }
    if (!result || !(result->operand().type == slot->second->tensor->type)) {
      return library_failure(absl::StrCat(
          "result '", name, "' is ", kernel::ToText(slot->second->tensor->type), ", but ", call.op,
          " returned ", result ? kernel::ToText(result->operand().type) : "nothing"));
    }
    auto view = device_.Wrap(result->operand().address, slot->second->tensor->type.bytes());
    if (!view.ok()) return view.failure();
    slot->second->view = *std::move(view);
    slot->second->library = std::move(result);
  }
  return std::nullopt;
}

MaybeFailure PlanRunner::Replay() { return graph_ ? graph_->Enqueue() : RunAll(); }

Outcome<TimedSample> PlanRunner::Time(bool is_cold) {
  MTMC_CHECK(is_executed_);
  for (auto& [name, slot] : slots_) slot->published.reset();
  return device_.Time([this] { return Replay(); }, is_cold);
}

MaybeFailure PlanRunner::CheckMemory() {
  for (const auto& [name, slot] : slots_) {
    if (!slot->own) continue;
    auto intact = slot->own->HasRedzones(poison_);
    if (!intact.ok()) return intact.failure();
    if (!*intact) {
      return Failure{.kind = Failure::Kind::kOutOfBounds,
                     .message = absl::StrCat("memory beside '", name, "' ",
                                             kernel::ToText(slot->tensor->type), " was written")};
    }
    if (!IsReadOnly(*slot->tensor)) continue;
    auto checksum = slot->own->Checksum();
    if (!checksum.ok()) return checksum.failure();
    if (*checksum != slot->checksum) {
      return Failure{.kind = Failure::Kind::kInputChanged,
                     .message = absl::StrCat("'", name, "' was changed, but is read only")};
    }
  }
  return std::nullopt;
}

Outcome<std::vector<PlanRunner::Output>> PlanRunner::Outputs() {
  MTMC_CHECK(is_executed_);
  std::vector<Output> outputs;
  for (const kernel::Tensor& tensor : options_.program.tensors) {
    if (tensor.role != kernel::Tensor::Role::kOutput) continue;
    Slot& slot = *slots_.find(tensor.name)->second;
    if (slot.view && !slot.published) {
      auto copy = device_.Allocate(tensor.type.bytes());
      if (!copy.ok()) return copy.failure();
      if (MaybeFailure failure = (*copy)->CopyFrom(*slot.view)) return *std::move(failure);
      slot.published = *std::move(copy);
    }
    outputs.push_back({&tensor, slot.view ? slot.published.get() : slot.own.get()});
  }
  return outputs;
}

Outcome<std::vector<StepActivity>> PlanRunner::Profile() {
  MTMC_CHECK(is_executed_);
  // A captured graph is left out: its kernels cannot be told apart by step. The
  // steps rebind its tensors, so it is dropped.
  is_executed_ = graph_ == nullptr;
  graph_.reset();
  std::vector<Body> steps;
  for (size_t i = 0; i < steps_.size(); ++i) {
    steps.push_back([this, i] { return RunStep(i); });
  }
  auto activity = device_.Profile(steps);
  for (auto& [name, slot] : slots_) slot->published.reset();
  return activity;
}

const LaunchCommand* PlanRunner::FindLaunch(size_t step) const {
  return steps_[step].launch ? &*steps_[step].launch : nullptr;
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/device/plan_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "worker/device/random_fill.h"

namespace mtmc::worker {

PlanRunner::PlanRunner(Device& device, Library* library, Options options)
    : device_(device),
      library_(library),
      options_(std::move(options)),
      tensors_(device, options_.program) {}

PlanRunner::~PlanRunner() = default;

Outcome<std::unique_ptr<PlanRunner>> PlanRunner::Create(Device& device, Library* library,
                                                        Options options) {
  std::unique_ptr<PlanRunner> runner(new PlanRunner(device, library, std::move(options)));
  if (MaybeFailure failure = runner->Prepare()) return *std::move(failure);
  return runner;
}

MaybeFailure PlanRunner::Prepare() {
  if (tensors_.IsSmall()) device_.Detach();
  auto module = device_.Load(options_.binary);
  if (!module.ok()) return module.failure();
  module_ = *std::move(module);
  auto steps = PrepareSteps(options_.program, options_.bindings, *module_, tensors_);
  if (!steps.ok()) return steps.failure();
  steps_ = *std::move(steps);
  for (const PlanStep& step : steps_) {
    if (!step.call) continue;
    has_calls_ = true;
    if (MaybeFailure failure = CheckCall(*step.call)) return failure;
  }
  return std::nullopt;
}

MaybeFailure PlanRunner::CheckCall(const kernel::LibraryCall& call) const {
  if (!library_) {
    return Failure{.kind = Failure::Kind::kLibrary, .message = "this worker has no library calls"};
  }
  const auto& allowed = options_.allowed_calls;
  if (std::find(allowed.begin(), allowed.end(), call.op) != allowed.end()) return std::nullopt;
  return Failure{
      .kind = Failure::Kind::kLibrary,
      .message = absl::StrCat("line ", call.line, ": '", call.op, "' is not an allowed call")};
}

MaybeFailure PlanRunner::Execute(const InputSources& inputs, uint64_t seed, bool under_load) {
  is_executed_ = false;
  seconds_ = 0;
  graph_.reset();
  if (MaybeFailure failure = tensors_.Place(inputs)) return failure;
  if (MaybeFailure failure = tensors_.Clear()) return failure;
  if (options_.program.has_capture) {
    if (MaybeFailure failure = CapturePlan()) return failure;
  }
  auto sample = RunOnce(
      {.seed = seed, .under_load = under_load, .is_flushed = device_.programs_have_clock()});
  if (!sample.ok()) return sample.failure();
  seconds_ = sample->seconds;
  is_executed_ = true;
  return CheckMemory();
}

MaybeFailure PlanRunner::Condition(uint64_t seed) {
  if (MaybeFailure failure = tensors_.Randomize(seed != 0 ? seed : DrawSeed())) return failure;
  return device_.Scrub();
}

Outcome<TimedSample> PlanRunner::RunOnce(const Run& run) {
  if (MaybeFailure failure = Condition(run.seed)) return *std::move(failure);
  if (!run.is_cold) {
    // The cache is warm with what the plan itself reads and writes; the results of
    // the run that warmed it are overwritten again.
    if (MaybeFailure failure = EnqueueAll()) return *std::move(failure);
    if (MaybeFailure failure = tensors_.Randomize(DrawSeed())) return *std::move(failure);
  }
  if (!run.under_load) {
    return device_.Time([this] { return EnqueueAll(); }, run.is_cold && run.is_flushed);
  }
  if (MaybeFailure failure = device_.RunUnderLoad(Launches())) return *std::move(failure);
  return TimedSample{};
}

// What is verified is the replay of the graph, because that is what will be timed.
MaybeFailure PlanRunner::CapturePlan() {
  const Body body = [this] { return RunAll(); };
  // A run before lets libraries choose and allocate.
  if (MaybeFailure failure = Condition(/*seed=*/0)) return failure;
  if (MaybeFailure failure = body()) return failure;
  if (MaybeFailure failure = device_.Synchronize()) return failure;
  auto graph = has_calls_ ? library_->Capture(body) : device_.Capture(body);
  if (!graph.ok()) return graph.failure();
  graph_ = *std::move(graph);
  return std::nullopt;
}

MaybeFailure PlanRunner::RunAll() {
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (MaybeFailure failure = RunStep(i)) return failure;
  }
  return std::nullopt;
}

MaybeFailure PlanRunner::RunStep(size_t index) {
  PlanStep& step = steps_[index];
  // Results of the previous run are dropped before the first step, so that a
  // library can take the same memory again.
  if (index == 0) tensors_.DropResults();
  if (step.call) return RunCall(*step.call);
  for (size_t i = 0; i < step.tensors.size(); ++i) {
    if (step.tensors[i]) step.launch->arguments[i] = step.tensors[i]->current();
  }
  return device_.Enqueue(*step.launch);
}

MaybeFailure PlanRunner::RunCall(const kernel::LibraryCall& call) {
  if (!library_->is_stream_ordered()) {
    if (MaybeFailure failure = device_.Synchronize()) return failure;
  }
  auto find = [this](std::string_view name) -> LibraryOperand {
    const PlanTensor* tensor = tensors_.Find(name);
    if (!tensor || !tensor->current()) return {};
    return {tensor->current()->address(), tensor->tensor->type};
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
    PlanTensor* tensor = tensors_.Find(name);
    std::unique_ptr<LibraryTensor>& result = (*results)[i];
    if (!tensor || IsReadOnly(*tensor->tensor)) {
      return library_failure(absl::StrCat("'", name, "' cannot take a result"));
    }
    const kernel::TensorType& type = tensor->tensor->type;
    if (!result || !(result->operand().type == type)) {
      return library_failure(
          absl::StrCat("result '", name, "' is ", kernel::ToText(type), ", but ", call.op,
                       " returned ", result ? kernel::ToText(result->operand().type) : "nothing"));
    }
    const bool is_input = tensors_.HasInputAt(result->operand().address, type.bytes());
    if (is_input && tensor->tensor->role == kernel::Tensor::Role::kOutput) {
      return library_failure(absl::StrCat("output '", name, "' is the memory of an input; ",
                                          call.op, " made no new tensor"));
    }
    auto view = device_.Wrap(result->operand().address, type.bytes());
    if (!view.ok()) return view.failure();
    tensor->view = *std::move(view);
    tensor->is_view_of_input = is_input;
    tensor->library = std::move(result);
  }
  return std::nullopt;
}

std::vector<Body> PlanRunner::Launches() {
  if (graph_) return {[this] { return graph_->Enqueue(); }};
  std::vector<Body> launches;
  for (size_t i = 0; i < steps_.size(); ++i) {
    launches.push_back([this, i] { return RunStep(i); });
  }
  return launches;
}

MaybeFailure PlanRunner::EnqueueAll() { return graph_ ? graph_->Enqueue() : RunAll(); }

Outcome<TimedSample> PlanRunner::Time(bool is_cold, const InputSources* inputs) {
  MTMC_CHECK(is_executed_);
  tensors_.DropPublished();
  if (inputs) {
    if (MaybeFailure failure = tensors_.Rewrite(*inputs)) return *std::move(failure);
  }
  return RunOnce({.is_cold = is_cold});
}

MaybeFailure PlanRunner::Shuffle() {
  MTMC_CHECK(is_executed_);
  tensors_.DropPublished();
  auto is_moved = tensors_.Shuffle(/*has_graph=*/graph_ != nullptr);
  if (!is_moved.ok()) return is_moved.failure();
  // The graph has the old addresses.
  return *is_moved && graph_ ? CapturePlan() : std::nullopt;
}

MaybeFailure PlanRunner::CheckMemory() { return tensors_.Check(); }

Outcome<std::vector<PlanRunner::Output>> PlanRunner::Outputs() {
  MTMC_CHECK(is_executed_);
  return tensors_.Outputs();
}

Outcome<uint64_t> PlanRunner::Digest() {
  MTMC_CHECK(is_executed_);
  return tensors_.Digest();
}

Outcome<PlanProfile> PlanRunner::Profile(CounterScope scope) {
  MTMC_CHECK(is_executed_);
  // A captured graph is left out: its kernels cannot be told apart by step. The
  // steps rebind its tensors, so it is dropped.
  is_executed_ = graph_ == nullptr;
  graph_.reset();
  const std::vector<Body> steps = Launches();
  tensors_.DropPublished();
  if (MaybeFailure failure = Condition(/*seed=*/0)) return *std::move(failure);
  auto activities = device_.Profile(steps);
  if (!activities.ok()) return activities.failure();
  PlanProfile profile{.activities = *std::move(activities)};
  if (scope != CounterScope::kNone) {
    auto counters = device_.Count(steps, scope);
    if (!counters.ok()) return counters.failure();
    profile.counters = *std::move(counters);
  }
  return profile;
}

const LaunchCommand* PlanRunner::FindLaunch(size_t step) const {
  return steps_[step].launch ? &*steps_[step].launch : nullptr;
}

}  // namespace mtmc::worker

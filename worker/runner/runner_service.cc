// SPDX-License-Identifier: Apache-2.0
#include "worker/runner/runner_service.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "kernel/graph/graph_proto.h"
#include "kernel/program/parser.h"
#include "worker/device/failure_proto.h"
#include "worker/runner/profile.h"
#include "worker/runner/shared_file.h"
#include "worker/runner/timed_block.h"
#include "worker/sandbox/seal.h"

namespace mtmc::worker {
namespace {

// A SharedFile's offsets are multiples of a cache line.
constexpr int64_t kFileAlignment = 64;

v1::Stage StageOf(const pipe::v1::RunnerRequest& request) {
  switch (request.request_case()) {
    case pipe::v1::RunnerRequest::kTime:
      return v1::STAGE_MEASURE;
    case pipe::v1::RunnerRequest::kProfile:
      return v1::STAGE_PROFILE;
    default:
      return v1::STAGE_VERIFY;
  }
}

// Kept inputs may take this part of the device's memory; the reference process
// holds its own copies and those of the fp64 run beside them.
constexpr int64_t kKeptMemoryShare = 8;

// Inputs that are remembered for later programs may take this part.
constexpr int64_t kContentMemoryShare = 16;

Failure NotKept(int64_t id) {
  return {.kind = Failure::Kind::kLaunch,
          .message = absl::StrCat("no inputs are kept under number ", id)};
}

Failure NotExecuted() {
  return {.kind = Failure::Kind::kLaunch,
          .message = "no program has been executed in this process"};
}

}  // namespace

RunnerService::RunnerService(Options options)
    : options_(std::move(options)), random_(std::random_device()()) {}

RunnerService::~RunnerService() = default;

absl::StatusOr<pipe::v1::RunnerResponse> RunnerService::Answer(
    const pipe::v1::RunnerRequest& request) {
  pipe::v1::RunnerResponse response;
  response.set_sequence(request.sequence());
  MTMC_ASSIGN_OR_RETURN(MaybeFailure failure, Dispatch(request, response));
  if (failure && ForgetContents(*failure)) {
    response.clear_response();
    MTMC_ASSIGN_OR_RETURN(failure, Dispatch(request, response));
  }
  // Once it is answered, the reference may free what it shares.
  if (backend_) {
    MaybeFailure closed = backend_->device->ClosePeers();
    if (!failure) failure = std::move(closed);
  }
  if (failure) {
    response.clear_response();
    *response.mutable_failure() = ToProto(*failure, StageOf(request));
    response.set_is_context_lost(failure->is_context_lost);
  }
  return response;
}

absl::StatusOr<MaybeFailure> RunnerService::Dispatch(const pipe::v1::RunnerRequest& request,
                                                     pipe::v1::RunnerResponse& response) {
  if (request.has_open()) {
    MTMC_RETURN_IF_ERROR(Open(request.open(), response));
    return MaybeFailure();
  }
  if (!backend_) return absl::FailedPreconditionError("the first request is not Open");
  switch (request.request_case()) {
    case pipe::v1::RunnerRequest::kLoad:
      return Load(request.load(), response);
    case pipe::v1::RunnerRequest::kExecute:
      return Execute(request.execute(), response);
    case pipe::v1::RunnerRequest::kTime:
      return Time(request.time(), response);
    case pipe::v1::RunnerRequest::kPublish:
      // Wild writes show where nobody looks for each execution.
      if (MaybeFailure failure = CheckForeignMemory()) return failure;
      return Publish(response);
    case pipe::v1::RunnerRequest::kProfile:
      return Profile(request.profile(), response);
    case pipe::v1::RunnerRequest::kUnload:
      Unload();
      return MaybeFailure();
    case pipe::v1::RunnerRequest::kCanary:
      RunCanary(response);
      return MaybeFailure();
    default:
      return absl::InvalidArgumentError("the request is empty");
  }
}

absl::Status RunnerService::Open(const pipe::v1::RunnerRequest::Open& open,
                                 pipe::v1::RunnerResponse& response) {
  plan_.reset();
  inputs_.reset();
  contents_.reset();
  outbox_.reset();
  backend_.reset();
  MTMC_ASSIGN_OR_RETURN(Backend backend, OpenBackend({.dialect = open.backend() == v1::DIALECT_CUDA
                                                                     ? kernel::Dialect::kCuda
                                                                     : kernel::Dialect::kOpenCl,
                                                      .device_index = open.device_index(),
                                                      .aten_plugin = open.aten_plugin(),
                                                      .measures_rates = open.measure_rates(),
                                                      .tools = options_.tools}));
  backend_ = std::make_unique<Backend>(std::move(backend));
  inputs_ = std::make_unique<InputStore>(*backend_->device,
                                         backend_->facts.memory_bytes / kKeptMemoryShare);
  contents_ = std::make_unique<ContentCache>(*backend_->device,
                                             backend_->facts.memory_bytes / kContentMemoryShare);
  outbox_ = std::make_unique<Outbox>(*backend_->device);
  pipe::v1::RunnerResponse::Opened& opened = *response.mutable_opened();
  *opened.mutable_device() = ToProto(backend_->facts);
  opened.set_profile_source(backend_->device->profile_source());
  opened.set_counters(backend_->counters);
  if (!open.seals()) return absl::OkStatus();
  // After all that the device's context needed, before any candidate.
  MTMC_ASSIGN_OR_RETURN(
      const auto sealed,
      Seal(open.backend() == v1::DIALECT_CUDA ? SealedDevice::kCuda : SealedDevice::kHost));
  opened.mutable_sealed()->Assign(sealed.begin(), sealed.end());
  return absl::OkStatus();
}

void RunnerService::Unload() {
  plan_.reset();
  inputs_->Clear();
  contents_->Sweep();
  if (backend_->library) backend_->library->Trim();
}

bool RunnerService::ForgetContents(const Failure& failure) {
  if (failure.is_context_lost || contents_->is_empty()) return false;
  if (failure.kind == Failure::Kind::kOutOfMemory) {
    contents_->Clear();
    return true;
  }
  if (failure.kind != Failure::Kind::kInputChanged) return false;
  const auto was_damaged = contents_->DropDamaged();
  return was_damaged.ok() && *was_damaged;
}

void RunnerService::RunCanary(pipe::v1::RunnerResponse& response) {
  Canary::Result result = backend_->canary->Run();
  pipe::v1::RunnerResponse::CanaryResult& canary = *response.mutable_canary();
  canary.set_fault(ToLog(result.fault));
  for (std::string& event : result.events) canary.add_events(std::move(event));
}

MaybeFailure RunnerService::Load(const pipe::v1::RunnerRequest::Load& load,
                                 pipe::v1::RunnerResponse& response) {
  plan_.reset();
  if (backend_->library) backend_->library->Trim();
  kernel::ParseResult parsed = kernel::ParseProgram(load.program());
  if (!parsed.program) {
    return Failure{.kind = Failure::Kind::kParse,
                   .message = "the text is not a program",
                   .diagnostics = kernel::ToText(parsed.diagnostics)};
  }
  kernel::Bindings bindings = kernel::DefaultBindings(*parsed.program);
  for (const auto& [name, value] : load.parameters()) bindings[name] = value;
  auto plan = PlanRunner::Create(
      *backend_->device, backend_->library.get(),
      {.program = *std::move(parsed.program),
       .bindings = std::move(bindings),
       .binary = load.binary(),
       .allowed_calls = {load.allowed_calls().begin(), load.allowed_calls().end()}});
  if (!plan.ok()) return plan.failure();
  plan_ = *std::move(plan);
  response.mutable_loaded()->set_outputs_stay(plan_->outputs_stay());
  return std::nullopt;
}

absl::StatusOr<MaybeFailure> RunnerService::Execute(const pipe::v1::RunnerRequest::Execute& execute,
                                                    pipe::v1::RunnerResponse& response) {
  if (!plan_) return MaybeFailure(NotExecuted());
  if (execute.kept() != 0) {
    const InputSources* kept = inputs_->Find(execute.kept());
    if (!kept) return MaybeFailure(NotKept(execute.kept()));
    inputs_->MarkSeen(execute.kept());
    return ExecuteOn(*kept, execute, response);
  }
  std::vector<SharedMapping> mappings;
  InputSources inputs;
  MTMC_ASSIGN_OR_RETURN(const MaybeFailure failure, FindInputs(execute, mappings, inputs));
  if (failure) return failure;
  if (execute.keep_as() != 0) {
    auto is_kept = inputs_->Keep(execute.keep_as(), plan_->program(), inputs);
    if (!is_kept.ok()) return MaybeFailure(is_kept.failure());
    if (*is_kept) response.mutable_outputs()->set_kept(execute.keep_as());
    if (execute.keep_only()) {
      response.mutable_outputs();
      return MaybeFailure();
    }
    if (*is_kept) inputs = *inputs_->Find(execute.keep_as());
    inputs_->MarkSeen(execute.keep_as());
  }
  return ExecuteOn(inputs, execute, response);
}

absl::StatusOr<MaybeFailure> RunnerService::FindInputs(
    const pipe::v1::RunnerRequest::Execute& execute, std::vector<SharedMapping>& mappings,
    InputSources& inputs) {
  for (const pipe::v1::SharedTensor& tensor : execute.inputs()) {
    const kernel::Tensor* declared = plan_->program().FindTensor(tensor.name());
    // An input that the program does not declare is not its business.
    if (!declared) continue;
    const int64_t bytes = declared->type.bytes();
    InputSource& source = inputs[tensor.name()];
    if (auto copy = contents_->Find(tensor.content(), bytes)) {
      source = std::move(copy);
      continue;
    }
    if (tensor.has_cuda_ipc()) {
      source = PeerMemory{.handle = tensor.cuda_ipc().handle(),
                          .offset_bytes = tensor.cuda_ipc().offset()};
    } else {
      MTMC_ASSIGN_OR_RETURN(
          SharedMapping mapping,
          SharedMapping::Open(tensor.file().path(), tensor.file().offset(), bytes));
      source = std::span<const std::byte>(mapping.bytes());
      mappings.push_back(std::move(mapping));
    }
    auto copy = contents_->Keep(tensor.content(), *declared, source);
    if (!copy.ok()) return MaybeFailure(copy.failure());
    if (*copy) source = *std::move(copy);
  }
  return MaybeFailure();
}

absl::StatusOr<MaybeFailure> RunnerService::ExecuteOn(
    const InputSources& inputs, const pipe::v1::RunnerRequest::Execute& execute,
    pipe::v1::RunnerResponse& response) {
  if (MaybeFailure failure =
          plan_->Execute(inputs, static_cast<uint32_t>(execute.poison()), execute.under_load())) {
    return failure;
  }
  response.mutable_outputs()->set_seconds(plan_->executed_seconds());
  if (execute.with_digest()) {
    auto digest = plan_->Digest();
    if (!digest.ok()) return MaybeFailure(digest.failure());
    response.mutable_outputs()->set_digest(*digest);
  }
  return ShareOutputs(response);
}

MaybeFailure RunnerService::Time(const pipe::v1::RunnerRequest::Time& time,
                                 pipe::v1::RunnerResponse& response) {
  if (!plan_ || !plan_->is_executed()) return NotExecuted();
  auto timed = TimeBlock(*backend_->device, *plan_, *inputs_, time, random_);
  if (!timed.ok()) return timed.failure();
  *response.mutable_timed() = *std::move(timed);
  return std::nullopt;
}

MaybeFailure RunnerService::CheckForeignMemory() {
  if (MaybeFailure failure = backend_->device->CheckGuards()) return failure;
  return inputs_->Check();
}

absl::StatusOr<MaybeFailure> RunnerService::Publish(pipe::v1::RunnerResponse& response) {
  if (!plan_ || !plan_->is_executed()) return MaybeFailure(NotExecuted());
  // Timing may have gone astray where the first run did not.
  if (MaybeFailure failure = plan_->CheckMemory()) return failure;
  return ShareOutputs(response);
}

absl::StatusOr<MaybeFailure> RunnerService::ShareOutputs(pipe::v1::RunnerResponse& response) {
  auto outputs = plan_->Outputs();
  if (!outputs.ok()) return MaybeFailure(outputs.failure());
  pipe::v1::RunnerResponse::Outputs& published = *response.mutable_outputs();
  published.set_stay(plan_->outputs_stay());
  std::vector<const Buffer*> buffers;
  buffers.reserve(outputs->size());
  for (const PlanRunner::Output& output : *outputs) buffers.push_back(output.buffer);
  auto places = outbox_->Share(buffers);
  if (!places.ok()) return MaybeFailure(places.failure());
  for (size_t i = 0; i < buffers.size(); ++i) {
    const kernel::Tensor& output = *(*outputs)[i].tensor;
    pipe::v1::SharedTensor& tensor = *published.add_outputs();
    tensor.set_name(output.name);
    *tensor.mutable_type() = kernel::ToProto(output.type);
    if (std::optional<PeerMemory>& place = (*places)[i]) {
      tensor.mutable_cuda_ipc()->set_handle(std::move(place->handle));
      tensor.mutable_cuda_ipc()->set_offset(place->offset_bytes);
    }
  }
  MaybeFailure failure;
  MTMC_RETURN_IF_ERROR(PublishFile(*outputs, published, failure));
  return failure;
}

// Writes the outputs that no other process can reach into one new file.
absl::Status RunnerService::PublishFile(const std::vector<PlanRunner::Output>& outputs,
                                        pipe::v1::RunnerResponse::Outputs& published,
                                        MaybeFailure& failure) {
  int64_t total = 0;
  for (int i = 0; i < published.outputs_size(); ++i) {
    pipe::v1::SharedTensor& tensor = *published.mutable_outputs(i);
    if (tensor.has_cuda_ipc()) continue;
    tensor.mutable_file()->set_offset(total);
    const int64_t bytes = outputs[static_cast<size_t>(i)].tensor->type.bytes();
    total += (bytes + kFileAlignment - 1) / kFileAlignment * kFileAlignment;
  }
  if (total == 0 && (outputs.empty() || published.outputs(0).has_cuda_ipc())) {
    return absl::OkStatus();
  }
  // Two names in turn: the file of the execution before stays readable.
  const std::string path =
      absl::StrCat(options_.scratch, "/outputs-", getpid(), "-", num_published_++ % 2, ".bin");
  MTMC_ASSIGN_OR_RETURN(const SharedMapping mapping, SharedMapping::Create(path, total));
  for (int i = 0; i < published.outputs_size(); ++i) {
    pipe::v1::SharedTensor& tensor = *published.mutable_outputs(i);
    if (tensor.has_cuda_ipc()) continue;
    tensor.mutable_file()->set_path(path);
    const PlanRunner::Output& output = outputs[static_cast<size_t>(i)];
    failure = output.buffer->Download(
        mapping.bytes().subspan(static_cast<size_t>(tensor.file().offset()),
                                static_cast<size_t>(output.tensor->type.bytes())));
    if (failure) return absl::OkStatus();
  }
  return absl::OkStatus();
}

MaybeFailure RunnerService::Profile(const pipe::v1::RunnerRequest::Profile& profile,
                                    pipe::v1::RunnerResponse& response) {
  if (!plan_ || !plan_->is_executed()) return NotExecuted();
  const absl::Time start = absl::Now();
  const CounterScope scope = !profile.with_counters()  ? CounterScope::kNone
                             : profile.hardware_only() ? CounterScope::kHardware
                                                       : CounterScope::kAll;
  auto profiled = plan_->Profile(scope);
  if (!profiled.ok()) return profiled.failure();
  v1::Profile& answer = *response.mutable_profile();
  answer = MakeProfile(*plan_, *profiled, backend_->device->profile_source());
  if (!profile.with_counters()) answer.set_missing_counters("they were not asked for");
  answer.set_collection_seconds(absl::ToDoubleSeconds(absl::Now() - start));
  return std::nullopt;
}

}  // namespace mtmc::worker

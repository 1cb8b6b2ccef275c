// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/cuda/cuda_buffer.h"
#include "worker/cuda/cuda_module.h"
#include "worker/device/random_fill.h"

namespace mtmc::worker {
namespace {

// KernelBench clears with 256 MB; more where the cache is larger than half of it.
constexpr int64_t kMinFlushBytes = int64_t{256} << 20;

// Part of the memory that buffers that are gone may keep for the next ones.
constexpr int64_t kKeptMemoryShare = 32;

// How old a reading of the clock may be: below the tens of milliseconds that the
// driver takes to change it.
constexpr absl::Duration kClockAge = absl::Milliseconds(2);

// Executions of nothing that tell what the host's clock adds.
constexpr int kEmptySamples = 9;

// Of all delays of one plan under load, at most.
constexpr double kMostDelaySeconds = 3e-3;

// Before one of `num_steps`: none at all for every other one, by chance.
double DrawDelay(size_t num_steps) {
  const uint64_t draw = DrawSeed() >> 1;
  const double share = static_cast<double>(draw >> 1) / 0x1p62;
  return draw & 1 ? share * kMostDelaySeconds / static_cast<double>(num_steps) : 0;
}

class CudaGraph final : public Graph {
 public:
  CudaGraph(std::shared_ptr<const CudaContext> context, CUgraphExec graph)
      : context_(std::move(context)), graph_(graph) {}

  ~CudaGraph() override { context_->api().cuGraphExecDestroy(graph_); }

  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  MaybeFailure Enqueue() override {
    const CUresult error = context_->api().cuGraphLaunch(graph_, context_->stream());
    if (error != CUDA_SUCCESS) return CudaFailure(context_->api(), error, "cuGraphLaunch");
    return std::nullopt;
  }

 private:
  const std::shared_ptr<const CudaContext> context_;
  const CUgraphExec graph_;
};

}  // namespace

CudaDevice::CudaDevice(std::shared_ptr<const CudaContext> context)
    : context_(std::move(context)),
      flush_byte_(static_cast<uint8_t>(1 + std::random_device()() % 255)) {}

CudaDevice::~CudaDevice() {
  const CudaApi& api = context_->api();
  if (flush_) api.cuMemFree(flush_);
  for (CUevent event : {begin_, start_, end_}) {
    if (event) api.cuEventDestroy(event);
  }
}

std::string CudaDevice::Source() {
  return absl::StrCat(CudaScan::Source(), CudaConditions::Source(), CudaYardstick::Source());
}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(
    const std::shared_ptr<const CudaContext>& context, const Options& options) {
  const CudaApi& api = context->api();
  std::unique_ptr<CudaDevice> device(new CudaDevice(context));
  MTMC_ASSIGN_OR_RETURN(device->facts_, context->ReadFacts());
  device->memory_ =
      std::make_shared<CudaMemory>(context, device->facts_.memory_bytes / kKeptMemoryShare);
  MTMC_ASSIGN_OR_RETURN(device->scan_, CudaScan::Create(context, options.kernels));
  MTMC_ASSIGN_OR_RETURN(device->conditions_,
                        CudaConditions::Create(context, options.kernels, device->facts_));
  MTMC_ASSIGN_OR_RETURN(device->yardstick_,
                        CudaYardstick::Create(context, options.kernels, device->facts_));
  for (CUevent* event : {&device->begin_, &device->start_, &device->end_}) {
    MTMC_RETURN_IF_ERROR(
        CudaStatus(api, api.cuEventCreate(event, CU_EVENT_DEFAULT), "cuEventCreate"));
  }
  device->clock_ = NvmlClock::Find(device->facts_.uuid);
  if (device->clock_) device->facts_.driver_version = device->clock_->driver_version();
  device->profiler_ = CudaProfiler::Create(context, options.cupti);
  return device;
}

Outcome<std::unique_ptr<Buffer>> CudaDevice::Allocate(int64_t bytes) {
  auto buffer = CudaBuffer::Allocate(context_, memory_, bytes);
  if (!buffer.ok()) return buffer;
  const BufferFill fill{.buffer = buffer->get(), .with_tensor = false};
  if (MaybeFailure failure = Randomize({&fill, 1}, DrawSeed())) return *std::move(failure);
  return buffer;
}

Outcome<std::unique_ptr<Buffer>> CudaDevice::Wrap(void* address, int64_t bytes) {
  return std::unique_ptr<Buffer>(
      std::make_unique<CudaBuffer>(context_, reinterpret_cast<CUdeviceptr>(address), bytes));
}

MaybeFailure CudaDevice::Randomize(std::span<const BufferFill> fills, uint64_t seed) {
  std::vector<RandomFill> prepared;
  for (size_t i = 0; i < fills.size(); ++i) {
    const auto& buffer = static_cast<const CudaBuffer&>(*fills[i].buffer);
    prepared.push_back(PrepareFill(buffer.Describe(), fills[i], StreamOf(seed, i)));
  }
  return scan_->Fill(prepared);
}

MaybeFailure CudaDevice::Scan(std::span<BufferScan> scans) {
  // Parallel to what is to be done with their answers.
  std::vector<CudaScan::Question> questions;
  std::vector<std::function<void(uint64_t)>> takers;
  bool asks_redzones = false;
  for (BufferScan& scan : scans) {
    const auto& buffer = static_cast<const CudaBuffer&>(*scan.buffer);
    scan.has_redzones = true;
    asks_redzones |= scan.with_redzones;
    if (scan.with_redzones) {
      RandomFill expected = buffer.Describe();
      expected.former = buffer.stream();
      questions.push_back({.kind = CudaScan::Question::Kind::kWrongWords, .fill = expected});
      takers.push_back([&scan](uint64_t wrong) { scan.has_redzones = wrong == 0; });
    }
    if (scan.with_checksum) {
      questions.push_back(buffer.AboutTensor());
      takers.push_back([&scan](uint64_t checksum) { scan.checksum = checksum; });
    }
  }
  const auto answers = scan_->Ask(questions);
  if (!answers.ok()) return answers.failure();
  for (size_t i = 0; i < takers.size(); ++i) takers[i]((*answers)[i]);
  // Who is still seen to be wrong is named by the caller.
  const bool are_intact = std::all_of(scans.begin(), scans.end(),
                                      [](const BufferScan& scan) { return scan.has_redzones; });
  if (asks_redzones && scan_->TakeStrays() && are_intact) return StrayWrite();
  return std::nullopt;
}

Outcome<std::unique_ptr<Module>> CudaDevice::Load(std::string_view binary) {
  lead_.Reset();
  scan_->DropStrays();
  conditions_->set_local_bytes(0);
  auto module = CudaModule::Load(context_, *conditions_, binary);
  if (!module.ok()) return module.failure();
  return std::unique_ptr<Module>(*std::move(module));
}

MaybeFailure CudaDevice::Enqueue(const LaunchCommand& command) {
  return static_cast<CudaKernel*>(command.kernel)->Launch(*context_, command);
}

MaybeFailure CudaDevice::Synchronize() { return context_->Synchronize(); }

Outcome<std::unique_ptr<Graph>> CudaDevice::Capture(const Body& body) {
  const CudaApi& api = context_->api();
  CUresult error =
      api.cuStreamBeginCapture(context_->stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (error != CUDA_SUCCESS) return CudaFailure(api, error, "cuStreamBeginCapture");
  const MaybeFailure failure = body();
  CUgraph graph = nullptr;
  // Also after a failure, because the stream stays in capture otherwise.
  error = api.cuStreamEndCapture(context_->stream(), &graph);
  if (failure || error != CUDA_SUCCESS) {
    if (graph) api.cuGraphDestroy(graph);
    return failure ? *failure : CudaFailure(api, error, "cuStreamEndCapture");
  }
  CUgraphExec executable = nullptr;
  error = api.cuGraphInstantiate(&executable, graph, 0);
  api.cuGraphDestroy(graph);
  if (error != CUDA_SUCCESS) return CudaFailure(api, error, "cuGraphInstantiate");
  return std::unique_ptr<Graph>(std::make_unique<CudaGraph>(context_, executable));
}

MaybeFailure CudaDevice::FlushCache() {
  const CudaApi& api = context_->api();
  if (!flush_) {
    flush_bytes_ = static_cast<size_t>(std::max(kMinFlushBytes, 2 * facts_.cache_bytes));
    const CUresult error = api.cuMemAlloc(&flush_, flush_bytes_);
    if (error != CUDA_SUCCESS) return CudaFailure(api, error, "the buffer that flushes the cache");
    if (MaybeFailure failure = FlushCache()) return failure;
    auto sum = scan_->Checksum(flush_, static_cast<int64_t>(flush_bytes_));
    if (!sum.ok()) return sum.failure();
    flush_checksum_ = *sum;
  }
  const CUresult error = api.cuMemsetD8Async(flush_, flush_byte_, flush_bytes_, context_->stream());
  if (error != CUDA_SUCCESS) return CudaFailure(api, error, "cuMemsetD8Async");
  return std::nullopt;
}

// Reading it takes the driver longer than a short kernel, and it changes slowly.
double CudaDevice::ReadClock() {
  const absl::Time now = absl::Now();
  if (clock_ && now - clock_time_ >= kClockAge) {
    clock_hertz_ = clock_->ReadHertz();
    clock_time_ = now;
  }
  return clock_hertz_;
}

Outcome<TimedSample> CudaDevice::Time(const Body& body, bool is_cold) {
  if (!empty_seconds_) {
    const Body empty = [] { return MaybeFailure(); };
    std::vector<double> seconds;
    for (int i = 0; i < kEmptySamples; ++i) {
      auto sample = TimeBody(empty, is_cold);
      if (!sample.ok()) return sample.failure();
      seconds.push_back(sample->unseen_seconds);
    }
    std::sort(seconds.begin(), seconds.end());
    empty_seconds_ = seconds[seconds.size() / 2];
  }
  auto sample = TimeBody(body, is_cold);
  if (sample.ok()) sample->unseen_seconds = std::max(0.0, sample->unseen_seconds - *empty_seconds_);
  return sample;
}

// Events and the host's clock over the same work:
//
//   host   |--------------------------------------------|
//   events    begin [flush] start [body] end                + whatever runs on
//
Outcome<TimedSample> CudaDevice::TimeBody(const Body& body, bool is_cold) {
  const CudaApi& api = context_->api();
  if (MaybeFailure failure = Synchronize()) return *std::move(failure);
  if (is_cold) conditions_->ReleasePersistingLines();
  auto record = [&](CUevent event) -> MaybeFailure {
    const CUresult error = api.cuEventRecord(event, context_->stream());
    if (error != CUDA_SUCCESS) return CudaFailure(api, error, "cuEventRecord");
    return std::nullopt;
  };
  const auto host_start = std::chrono::steady_clock::now();
  if (MaybeFailure failure = record(begin_)) return *std::move(failure);
  // The flush runs while the host enqueues the body, as in KernelBench.
  for (int i = 0; is_cold && i < lead_.passes(); ++i) {
    if (MaybeFailure failure = FlushCache()) return *std::move(failure);
  }
  if (MaybeFailure failure = record(start_)) return *std::move(failure);
  if (MaybeFailure failure = body()) return *std::move(failure);
  if (MaybeFailure failure = record(end_)) return *std::move(failure);
  const bool has_begun = api.cuEventQuery(start_) == CUDA_SUCCESS;
  const bool is_late = is_cold && lead_.Note(has_begun);
  // Asked while the GPU is still at work, where the answer says most.
  const bool is_throttled = clock_ && clock_->IsThrottled();
  const double clock_hertz = ReadClock();
  // The whole device, not the stream alone: nothing may run on unseen.
  CUresult error = api.cuCtxSynchronize();
  const std::chrono::duration<double> host = std::chrono::steady_clock::now() - host_start;
  if (error != CUDA_SUCCESS) return CudaFailure(api, error, "cuCtxSynchronize");
  float milliseconds = 0;
  float all_milliseconds = 0;
  error = api.cuEventElapsedTime(&milliseconds, start_, end_);
  if (error == CUDA_SUCCESS) error = api.cuEventElapsedTime(&all_milliseconds, begin_, end_);
  if (error != CUDA_SUCCESS) return CudaFailure(api, error, "cuEventElapsedTime");
  return TimedSample{.seconds = static_cast<double>(milliseconds) * 1e-3,
                     .is_throttled = is_throttled,
                     .is_late = is_late,
                     .clock_hertz = clock_hertz,
                     .unseen_seconds = host.count() - static_cast<double>(all_milliseconds) * 1e-3};
}

Outcome<std::optional<double>> CudaDevice::TimeYardstick() {
  using Seconds = std::optional<double>;
  if (!yardstick_->Reserve()) return Seconds();
  auto sample = TimeBody([this] { return yardstick_->Enqueue(); }, /*is_cold=*/true);
  if (!sample.ok()) return sample.failure();
  return sample->is_clean() ? Seconds(sample->seconds) : Seconds();
}

MaybeFailure CudaDevice::Scrub() { return conditions_->Scrub(); }

MaybeFailure CudaDevice::ClosePeers() { return context_->peers().CloseAll(); }

MaybeFailure CudaDevice::CheckGuards() {
  if (!flush_) return std::nullopt;
  auto sum = scan_->Checksum(flush_, static_cast<int64_t>(flush_bytes_));
  if (!sum.ok()) return sum.failure();
  if (*sum == flush_checksum_) return std::nullopt;
  return Failure{.kind = Failure::Kind::kOutOfBounds,
                 .message =
                     "memory that the program was never given was written: the buffer that "
                     "flushes the cache"};
}

MaybeFailure CudaDevice::RunUnderLoad(std::span<const Body> steps) {
  if (MaybeFailure failure = Synchronize()) return failure;
  conditions_->ReleasePersistingLines();
  // It needs the whole device, or takes long.
  if (MaybeFailure failure = FlushCache()) return failure;
  if (MaybeFailure failure = Synchronize()) return failure;
  if (MaybeFailure failure = conditions_->StartLoad()) return failure;
  MaybeFailure failure;
  for (const Body& step : steps) {
    const double delay = DrawDelay(steps.size());
    if (!failure && delay > 0) failure = conditions_->Delay(delay);
    if (!failure) failure = step();
  }
  // The load must not last on after a failed launch.
  if (MaybeFailure ended = conditions_->EndLoad()) return ended;
  if (failure) return failure;
  const CUresult error = context_->api().cuCtxSynchronize();
  if (error != CUDA_SUCCESS) return CudaFailure(context_->api(), error, "cuCtxSynchronize");
  return std::nullopt;
}

// Writing a large buffer leaves lines that the first step would have to write
// back, and that would be counted as its own; reading the buffer again does it
// for the step.
MaybeFailure CudaDevice::CleanCache() {
  if (MaybeFailure failure = FlushCache()) return failure;
  auto sum = scan_->Checksum(flush_, static_cast<int64_t>(flush_bytes_));
  if (!sum.ok()) return sum.failure();
  return std::nullopt;
}

Outcome<std::vector<StepActivity>> CudaDevice::Profile(const std::vector<Body>& steps) {
  if (MaybeFailure failure = FlushCache()) return *std::move(failure);
  if (MaybeFailure failure = Synchronize()) return *std::move(failure);
  if (profiler_ && profiler_->Start()) return profiler_->Profile(steps);
  std::vector<StepActivity> activities;
  for (const Body& step : steps) {
    auto sample = Time(step, /*is_cold=*/false);
    if (!sample.ok()) return sample.failure();
    activities.push_back({.seconds = sample->seconds});
  }
  return activities;
}

Outcome<StepCounters> CudaDevice::Count(const std::vector<Body>& steps, CounterScope scope) {
  if (!profiler_) return StepCounters{.missing = "there is no CUPTI"};
  return profiler_->Count(steps, scope, [this] { return CleanCache(); });
}

std::string CudaDevice::profile_source() const {
  return profiler_ && !profiler_->is_refused() ? "cupti" : "events";
}

}  // namespace mtmc::worker

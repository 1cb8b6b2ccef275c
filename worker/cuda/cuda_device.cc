// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/cuda/cuda_buffer.h"

namespace mtmc::worker {
namespace {

// What a kernel gets without asking; beyond, an attribute must be set first.
constexpr int64_t kPlainSharedBytes = 48 * 1024;

// KernelBench clears with 256 MB; more where the cache is larger than half of it.
constexpr int64_t kMinFlushBytes = int64_t{256} << 20;

class CudaKernel final : public Kernel {
 public:
  explicit CudaKernel(CUfunction function) : function_(function) {}

  CUfunction function() const { return function_; }

  // Largest dynamic shared memory that was asked for so far.
  int64_t shared_limit = kPlainSharedBytes;

 private:
  const CUfunction function_;
};

class CudaModule final : public Module {
 public:
  CudaModule(std::shared_ptr<const CudaContext> context, CUmodule module)
      : context_(std::move(context)), module_(module) {}

  ~CudaModule() override { context_->api().cuModuleUnload(module_); }

  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  Kernel* Find(std::string_view name) override {
    auto known = kernels_.find(name);
    if (known != kernels_.end()) return known->second.get();
    const std::string text(name);
    CUfunction function = nullptr;
    if (context_->api().cuModuleGetFunction(&function, module_, text.c_str()) != CUDA_SUCCESS) {
      return nullptr;
    }
    return (kernels_[text] = std::make_unique<CudaKernel>(function)).get();
  }

 private:
  const std::shared_ptr<const CudaContext> context_;
  const CUmodule module_;
  std::map<std::string, std::unique_ptr<CudaKernel>, std::less<>> kernels_;
};

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

CudaDevice::CudaDevice(std::shared_ptr<const CudaContext> context) : context_(std::move(context)) {}

CudaDevice::~CudaDevice() {
  const CudaApi& api = context_->api();
  if (flush_) api.cuMemFree(flush_);
  if (start_) api.cuEventDestroy(start_);
  if (end_) api.cuEventDestroy(end_);
}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(
    std::shared_ptr<const CudaContext> context, const Options& options) {
  const CudaApi& api = context->api();
  std::unique_ptr<CudaDevice> device(new CudaDevice(context));
  MTMC_ASSIGN_OR_RETURN(device->facts_, context->ReadFacts());
  MTMC_ASSIGN_OR_RETURN(device->checksum_, CudaChecksum::Create(context, options.checksum_binary));
  for (CUevent* event : {&device->start_, &device->end_}) {
    MTMC_RETURN_IF_ERROR(
        CudaStatus(api, api.cuEventCreate(event, CU_EVENT_DEFAULT), "cuEventCreate"));
  }
  device->clock_ = NvmlClock::Find(device->facts_.uuid);
  if (device->clock_) device->facts_.driver_version = device->clock_->driver_version();
  auto cupti = CuptiActivity::Open(options.cupti);
  if (cupti.ok()) {
    device->cupti_ = *std::move(cupti);
  } else {
    base::Log(base::LogLevel::kWarning, "kernels are profiled with events",
              {{"reason", cupti.status()}});
  }
  return device;
}

Outcome<std::unique_ptr<Buffer>> CudaDevice::Allocate(int64_t bytes) {
  return CudaBuffer::Allocate(context_, checksum_, bytes);
}

Outcome<std::unique_ptr<Buffer>> CudaDevice::Wrap(void* address, int64_t bytes) {
  return std::unique_ptr<Buffer>(std::make_unique<CudaBuffer>(
      context_, checksum_, reinterpret_cast<CUdeviceptr>(address), bytes));
}

Outcome<std::unique_ptr<Module>> CudaDevice::Load(std::string_view binary) {
  // A plan of library calls alone may come without device code.
  CUmodule module = nullptr;
  const CUresult error = context_->api().cuModuleLoadData(&module, std::string(binary).c_str());
  if (error != CUDA_SUCCESS) return CudaFailure(context_->api(), error, "cuModuleLoadData");
  return std::unique_ptr<Module>(std::make_unique<CudaModule>(context_, module));
}

MaybeFailure CudaDevice::Enqueue(const LaunchCommand& command) {
  const CudaApi& api = context_->api();
  auto& kernel = *static_cast<CudaKernel*>(command.kernel);
  if (command.shared_bytes > kernel.shared_limit) {
    const CUresult error =
        api.cuFuncSetAttribute(kernel.function(), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               static_cast<int>(command.shared_bytes));
    if (error != CUDA_SUCCESS) {
      return CudaFailure(
          api, error,
          absl::StrCat("a launch with ", command.shared_bytes, " bytes of shared memory"));
    }
    kernel.shared_limit = command.shared_bytes;
  }
  std::vector<CUdeviceptr> pointers(command.arguments.size());
  std::vector<void*> values(command.arguments.size());
  for (size_t i = 0; i < command.arguments.size(); ++i) {
    if (const auto* buffer = std::get_if<const Buffer*>(&command.arguments[i])) {
      pointers[i] = reinterpret_cast<CUdeviceptr>((*buffer)->address());
      values[i] = &pointers[i];
    } else {
      // The driver copies the value before it returns.
      values[i] =
          const_cast<std::byte*>(std::get<ScalarArgument>(command.arguments[i]).value.data());
    }
  }
  const auto& grid = command.grid;
  const auto& block = command.block;
  const CUresult error = api.cuLaunchKernel(
      kernel.function(), static_cast<unsigned>(grid[0]), static_cast<unsigned>(grid[1]),
      static_cast<unsigned>(grid[2]), static_cast<unsigned>(block[0]),
      static_cast<unsigned>(block[1]), static_cast<unsigned>(block[2]),
      static_cast<unsigned>(command.shared_bytes), context_->stream(), values.data(), nullptr);
  if (error != CUDA_SUCCESS) {
    return CudaFailure(api, error,
                       absl::StrCat("a launch with grid (", grid[0], ", ", grid[1], ", ", grid[2],
                                    "), block (", block[0], ", ", block[1], ", ", block[2],
                                    ") and ", command.shared_bytes, " bytes of shared memory"));
  }
  return std::nullopt;
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
  }
  const CUresult error = api.cuMemsetD8Async(flush_, 0, flush_bytes_, context_->stream());
  if (error != CUDA_SUCCESS) return CudaFailure(api, error, "cuMemsetD8Async");
  return std::nullopt;
}

Outcome<TimedSample> CudaDevice::Time(const Body& body, bool is_cold) {
  const CudaApi& api = context_->api();
  if (MaybeFailure failure = Synchronize()) return *std::move(failure);
  // The flush runs while the host enqueues the body, as in KernelBench.
  if (is_cold) {
    if (MaybeFailure failure = FlushCache()) return *std::move(failure);
  }
  CUresult error = api.cuEventRecord(start_, context_->stream());
  if (error != CUDA_SUCCESS) return CudaFailure(api, error, "cuEventRecord");
  if (MaybeFailure failure = body()) return *std::move(failure);
  error = api.cuEventRecord(end_, context_->stream());
  if (error != CUDA_SUCCESS) return CudaFailure(api, error, "cuEventRecord");
  // Asked while the GPU is still at work, where the answer says most.
  const bool is_throttled = clock_ && clock_->IsThrottled();
  if (MaybeFailure failure = Synchronize()) return *std::move(failure);
  float milliseconds = 0;
  error = api.cuEventElapsedTime(&milliseconds, start_, end_);
  if (error != CUDA_SUCCESS) return CudaFailure(api, error, "cuEventElapsedTime");
  return TimedSample{.seconds = static_cast<double>(milliseconds) * 1e-3,
                     .is_throttled = is_throttled};
}

Outcome<StepActivity> CudaDevice::ProfileStep(const Body& step) {
  if (!cupti_) {
    auto sample = Time(step, /*is_cold=*/false);
    if (!sample.ok()) return sample.failure();
    return StepActivity{.seconds = sample->seconds};
  }
  if (MaybeFailure failure = step()) return *std::move(failure);
  if (MaybeFailure failure = Synchronize()) return *std::move(failure);
  return cupti_->Collect();
}

Outcome<std::vector<StepActivity>> CudaDevice::Profile(const std::vector<Body>& steps) {
  if (MaybeFailure failure = FlushCache()) return *std::move(failure);
  if (MaybeFailure failure = Synchronize()) return *std::move(failure);
  if (cupti_) {
    const absl::Status status = cupti_->Start();
    if (!status.ok()) {
      base::Log(base::LogLevel::kWarning, "kernels are profiled with events", {{"reason", status}});
      cupti_.reset();
    }
  }
  std::vector<StepActivity> activities;
  MaybeFailure failure;
  for (const Body& step : steps) {
    auto activity = ProfileStep(step);
    if (!activity.ok()) {
      failure = activity.failure();
      break;
    }
    activities.push_back(*activity);
  }
  if (cupti_) cupti_->Stop();
  if (failure) return *std::move(failure);
  return activities;
}

}  // namespace mtmc::worker

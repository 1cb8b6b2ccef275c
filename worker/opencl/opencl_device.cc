// SPDX-License-Identifier: Apache-2.0
#include "worker/opencl/opencl_device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "worker/device/random_fill.h"
#include "worker/opencl/opencl_buffer.h"
#include "worker/opencl/opencl_compiler.h"

namespace mtmc::worker {
namespace {

// Four times the last-level cache evicts it whatever its replacement does; 256 MiB
// take 50 ms on two cores, and more would only cost time.
constexpr int64_t kFlushFactor = 4;
constexpr int64_t kMinFlushBytes = int64_t{16} << 20;
constexpr int64_t kMaxFlushBytes = int64_t{256} << 20;

// How long the load lasts unless what it loads ends before: longer than a kernel might wait
// for the writes of another work-group instead of synchronizing with it.
constexpr std::chrono::milliseconds kMostLoad{25};

// Of all delays of one plan, at most.
constexpr std::chrono::microseconds kMostDelay{2000};

// `volatile` keeps stores that nothing reads, and an index that the compiler does not know
// keeps the stack in memory. A work-group waits for as many others as there are threads, so
// that each thread has one, and goes on without them after some 100 ms.
constexpr char kScrubSource[] = R"(
__kernel void mtmc_scrub(ulong seed, __global volatile uint* arrived, uint wanted) {
  atomic_inc(arrived);
  for (uint i = 0; i < 10000000 && (int)(atomic_add(arrived, 0) - wanted) < 0; ++i) {}
  __local volatile uint words[LOCAL_WORDS];
  volatile uint stack[262144];
  ulong x = seed + get_group_id(0);
  for (uint i = 0; i < LOCAL_WORDS; ++i) {
    x = x * 6364136223846793005UL + seed;
    words[i] = (uint)(x >> 32);
  }
  for (uint i = 0; i < 262144; ++i) {
    x = x * 6364136223846793005UL + seed;
    stack[(i + (uint)seed) % 262144] = (uint)(x >> 32);
  }
}
)";

// Of local memory, for what the backend puts beside a kernel's own.
constexpr int64_t kLocalSpareWords = 256;

template <typename Value>
ScalarArgument ArgumentOf(Value value) {
  ScalarArgument argument{.bytes = sizeof value};
  std::memcpy(argument.value.data(), &value, sizeof value);
  return argument;
}

// Threads that keep the host's cores busy, up to twice as many as there are, while they live.
class BusyThreads {
 public:
  BusyThreads() {
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    const unsigned count = 1 + std::random_device()() % (2 * cores);
    const auto end = std::chrono::steady_clock::now() + kMostLoad;
    for (unsigned i = 0; i < count; ++i) {
      threads_.emplace_back([this, end] {
        while (!is_done_.load(std::memory_order_relaxed) &&
               std::chrono::steady_clock::now() < end) {
        }
      });
    }
  }

  ~BusyThreads() {
    is_done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;

 private:
  std::atomic<bool> is_done_ = false;
  std::vector<std::thread> threads_;
};

// Enqueues the steps, every other one by chance some time after the one before.
MaybeFailure RunDelayed(std::span<const Body> steps) {
  const auto longest =
      static_cast<uint64_t>(kMostDelay.count()) / std::max<size_t>(steps.size(), 1);
  for (const Body& step : steps) {
    const uint64_t draw = DrawSeed() >> 1;
    const std::chrono::microseconds delay((draw >> 1) % (longest + 1) * (draw & 1));
    const auto end = std::chrono::steady_clock::now() + delay;
    while (std::chrono::steady_clock::now() < end) {
    }
    if (MaybeFailure failure = step()) return failure;
  }
  return std::nullopt;
}

class OpenClKernel final : public Kernel {
 public:
  OpenClKernel(const OpenClApi& api, cl_kernel kernel) : api_(api), kernel_(kernel) {}

  ~OpenClKernel() override { api_.clReleaseKernel(kernel_); }

  OpenClKernel(const OpenClKernel&) = delete;
  OpenClKernel& operator=(const OpenClKernel&) = delete;

  cl_kernel get() const { return kernel_; }

 private:
  const OpenClApi& api_;
  const cl_kernel kernel_;
};

class OpenClModule final : public Module {
 public:
  OpenClModule(std::shared_ptr<const OpenClContext> context, cl_program program)
      : context_(std::move(context)), program_(program) {}

  ~OpenClModule() override {
    kernels_.clear();
    context_->api().clReleaseProgram(program_);
  }

  OpenClModule(const OpenClModule&) = delete;
  OpenClModule& operator=(const OpenClModule&) = delete;

  Kernel* Find(std::string_view name) override {
    auto known = kernels_.find(name);
    if (known != kernels_.end()) return known->second.get();
    cl_int error = CL_SUCCESS;
    const std::string text(name);
    cl_kernel kernel = context_->api().clCreateKernel(program_, text.c_str(), &error);
    if (error != CL_SUCCESS) return nullptr;
    return (kernels_[text] = std::make_unique<OpenClKernel>(context_->api(), kernel)).get();
  }

 private:
  const std::shared_ptr<const OpenClContext> context_;
  const cl_program program_;
  std::map<std::string, std::unique_ptr<OpenClKernel>, std::less<>> kernels_;
};

// A plan without graphs, run again.
class RepeatedBody final : public Graph {
 public:
  explicit RepeatedBody(Body body) : body_(std::move(body)) {}

  MaybeFailure Enqueue() override { return body_(); }

 private:
  const Body body_;
};

}  // namespace

OpenClDevice::OpenClDevice(std::shared_ptr<const OpenClContext> context)
    : context_(std::move(context)), facts_(context_->ReadFacts()) {}

Outcome<std::unique_ptr<Buffer>> OpenClDevice::Allocate(int64_t bytes) {
  auto buffer = OpenClBuffer::Allocate(context_, bytes);
  if (!buffer.ok()) return buffer.failure();
  const BufferFill fill{.buffer = buffer->get(), .with_tensor = false};
  if (MaybeFailure failure = Randomize({&fill, 1}, DrawSeed())) return *std::move(failure);
  return std::unique_ptr<Buffer>(*std::move(buffer));
}

Outcome<std::unique_ptr<Buffer>> OpenClDevice::Wrap(void* address, int64_t bytes) {
  auto buffer = OpenClBuffer::Wrap(context_, address, bytes);
  if (!buffer.ok()) return buffer.failure();
  return std::unique_ptr<Buffer>(*std::move(buffer));
}

MaybeFailure OpenClDevice::Randomize(std::span<const BufferFill> fills, uint64_t seed) {
  for (size_t i = 0; i < fills.size(); ++i) {
    auto& buffer = static_cast<OpenClBuffer&>(*fills[i].buffer);
    const auto wrong = buffer.Apply(PrepareFill(buffer.Describe(), fills[i], StreamOf(seed, i)));
    if (!wrong.ok()) return wrong.failure();
    has_strays_ |= *wrong != 0;
  }
  return std::nullopt;
}

MaybeFailure OpenClDevice::Scan(std::span<BufferScan> scans) {
  bool asks_redzones = false;
  for (BufferScan& scan : scans) {
    const auto& buffer = static_cast<const OpenClBuffer&>(*scan.buffer);
    asks_redzones |= scan.with_redzones;
    if (scan.with_redzones) {
      RandomFill question = buffer.Describe();
      question.former = buffer.stream();
      const auto wrong = buffer.Apply(question);
      if (!wrong.ok()) return wrong.failure();
      scan.has_redzones = *wrong == 0;
    }
    if (scan.with_checksum) {
      const auto checksum = buffer.Checksum();
      if (!checksum.ok()) return checksum.failure();
      scan.checksum = *checksum;
    }
  }
  // Who is still seen to be wrong is named by the caller.
  const bool are_intact = std::all_of(scans.begin(), scans.end(),
                                      [](const BufferScan& scan) { return scan.has_redzones; });
  if (asks_redzones && std::exchange(has_strays_, false) && are_intact) return StrayWrite();
  return std::nullopt;
}

Outcome<std::unique_ptr<Module>> OpenClDevice::Load(std::string_view binary) {
  has_strays_ = false;
  const OpenClApi& api = context_->api();
  const cl_device_id device = context_->device();
  const size_t length = binary.size();
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int error = CL_SUCCESS;
  cl_int binary_status = CL_SUCCESS;
  cl_program program = api.clCreateProgramWithBinary(context_->context(), 1, &device, &length,
                                                     &bytes, &binary_status, &error);
  if (error != CL_SUCCESS) return OpenClFailure(error, "clCreateProgramWithBinary");
  auto module = std::make_unique<OpenClModule>(context_, program);
  error = api.clBuildProgram(program, 1, &device, "", nullptr, nullptr);
  if (error != CL_SUCCESS) {
    Failure failure = OpenClFailure(error, "clBuildProgram");
    failure.diagnostics = ReadBuildLog(*context_, program);
    return failure;
  }
  return std::unique_ptr<Module>(std::move(module));
}

MaybeFailure OpenClDevice::Enqueue(const LaunchCommand& command) {
  const OpenClApi& api = context_->api();
  cl_kernel kernel = static_cast<const OpenClKernel*>(command.kernel)->get();
  for (size_t i = 0; i < command.arguments.size(); ++i) {
    cl_mem memory = nullptr;
    const void* value = &memory;
    size_t size = sizeof memory;
    if (const auto* buffer = std::get_if<const Buffer*>(&command.arguments[i])) {
      memory = static_cast<const OpenClBuffer*>(*buffer)->memory();
    } else {
      const auto& scalar = std::get<ScalarArgument>(command.arguments[i]);
      value = scalar.value.data();
      size = scalar.bytes;
    }
    const cl_int error = api.clSetKernelArg(kernel, static_cast<cl_uint>(i), size, value);
    if (error != CL_SUCCESS) {
      return OpenClFailure(error, absl::StrCat("clSetKernelArg for argument ", i + 1));
    }
  }
  size_t global[3];
  size_t local[3];
  for (size_t axis = 0; axis < 3; ++axis) {
    local[axis] = static_cast<size_t>(command.block[axis]);
    global[axis] = static_cast<size_t>(command.grid[axis]) * local[axis];
  }
  const cl_int error = api.clEnqueueNDRangeKernel(context_->queue(), kernel, 3, nullptr, global,
                                                  local, 0, nullptr, nullptr);
  if (error != CL_SUCCESS) {
    return OpenClFailure(error, absl::StrCat("a launch with block (", local[0], ", ", local[1],
                                             ", ", local[2], ")"));
  }
  return std::nullopt;
}

MaybeFailure OpenClDevice::Synchronize() {
  const cl_int error = context_->api().clFinish(context_->queue());
  if (error != CL_SUCCESS) return OpenClFailure(error, "clFinish");
  return std::nullopt;
}

Outcome<std::unique_ptr<Graph>> OpenClDevice::Capture(const Body& body) {
  return std::unique_ptr<Graph>(std::make_unique<RepeatedBody>(body));
}

MaybeFailure OpenClDevice::FlushCache() {
  if (!flush_) {
    const int64_t bytes =
        std::clamp(kFlushFactor * facts_.cache_bytes, kMinFlushBytes, kMaxFlushBytes);
    auto buffer = Allocate(bytes);
    if (!buffer.ok()) return buffer.failure();
    flush_ = *std::move(buffer);
  }
  return flush_->Fill(flush_value_++);
}

Outcome<TimedSample> OpenClDevice::Time(const Body& body, bool is_cold) {
  if (is_cold) {
    if (MaybeFailure failure = FlushCache()) return *std::move(failure);
  }
  if (MaybeFailure failure = Synchronize()) return *std::move(failure);
  const auto start = std::chrono::steady_clock::now();
  if (MaybeFailure failure = body()) return *std::move(failure);
  if (MaybeFailure failure = Synchronize()) return *std::move(failure);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return TimedSample{.seconds = elapsed.count()};
}

std::unique_ptr<Module> OpenClDevice::MakeScrub() {
  OpenClCompiler compiler(context_);
  const CompileResult compiled = compiler.Compile(
      kScrubSource, {{"LOCAL_WORDS", facts_.shared_memory_per_block_bytes / 4 - kLocalSpareWords}});
  auto module = compiled.failure ? Outcome<std::unique_ptr<Module>>(*compiled.failure)
                                 : Load(compiled.binary);
  if (module.ok()) return *std::move(module);
  base::Log(base::LogLevel::kWarning, "local memory is not scrubbed",
            {{"reason", module.failure().message}});
  return nullptr;
}

MaybeFailure OpenClDevice::Scrub() {
  if (!scrub_) scrub_ = MakeScrub();
  if (!*scrub_) return std::nullopt;
  if (!arrived_) {
    auto buffer = Allocate(sizeof scrubs_);
    if (!buffer.ok()) return buffer.failure();
    arrived_ = *std::move(buffer);
    if (MaybeFailure failure = arrived_->Fill(0)) return failure;
  }
  const auto units = static_cast<uint32_t>(facts_.compute_units);
  return Enqueue(
      {.kernel = (*scrub_)->Find("mtmc_scrub"),
       .grid = {units, 1, 1},
       .arguments = {ArgumentOf(DrawSeed()), arrived_.get(), ArgumentOf(++scrubs_ * units)}});
}

bool OpenClDevice::programs_have_clock() const { return !context_->is_host(); }

MaybeFailure OpenClDevice::RunUnderLoad(std::span<const Body> steps) {
  if (!context_->is_host()) {
    if (MaybeFailure failure = FlushCache()) return failure;
    return RunBesideFill(steps);
  }
  const BusyThreads load;
  if (MaybeFailure failure = RunDelayed(steps)) return failure;
  return Synchronize();
}

MaybeFailure OpenClDevice::RunBesideFill(std::span<const Body> steps) {
  // The buffer that flushes the cache is nobody's.
  const OpenClApi& api = context_->api();
  cl_int error = CL_SUCCESS;
  cl_command_queue queue =
      api.clCreateCommandQueue(context_->context(), context_->device(), 0, &error);
  if (error != CL_SUCCESS) return OpenClFailure(error, "clCreateCommandQueue");
  const auto* memory = static_cast<const OpenClBuffer*>(flush_.get());
  error = api.clEnqueueFillBuffer(queue, memory->memory(), &flush_value_, 1, 0,
                                  static_cast<size_t>(flush_->bytes()), 0, nullptr, nullptr);
  MaybeFailure failure = RunDelayed(steps);
  if (!failure) failure = Synchronize();
  if (error == CL_SUCCESS) error = api.clFinish(queue);
  api.clReleaseCommandQueue(queue);
  if (!failure && error != CL_SUCCESS) failure = OpenClFailure(error, "the load");
  return failure;
}

Outcome<std::vector<StepActivity>> OpenClDevice::Profile(const std::vector<Body>& steps) {
  std::vector<StepActivity> activities;
  if (MaybeFailure failure = FlushCache()) return *std::move(failure);
  for (const Body& step : steps) {
    auto sample = Time(step, /*is_cold=*/false);
    if (!sample.ok()) return sample.failure();
    activities.push_back({.seconds = sample->seconds});
  }
  return activities;
}

}  // namespace mtmc::worker

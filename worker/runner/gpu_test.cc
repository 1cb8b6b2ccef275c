// SPDX-License-Identifier: Apache-2.0
//
// The CUDA path end to end, on a real GPU: prints one line per case.

// The listener below needs Catch's reporter interfaces.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <iostream>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "common/base/temp_dir.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/builder/client.h"
#include "worker/runner/client.h"
#include "worker/runner/gpu_fixture.h"
#include "worker/runner/shared_file.h"

namespace mtmc::worker {
namespace {

struct ResultPrinter : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (stats.totals.assertions.total() == 0) return;
    std::cout << (stats.totals.assertions.allPassed() ? "PASS " : "FAIL ") << stats.testInfo.name
              << std::endl;
  }
};

CATCH_REGISTER_LISTENER(ResultPrinter)

std::string Describe(const MaybeFailure& failure) {
  return failure ? failure->message + "\n" + failure->diagnostics : "";
}

// y = 2 x, with shared memory beyond what a kernel gets without asking.
std::string DoubleProgram(const std::string& extra = "", const std::string& directive = "") {
  return "//@ mtmc 1 cuda\n" + directive + R"(//@ input x f32[1024]
//@ output y f32[1024]
//@ tune WIDTH = 128 256
//@ launch twice grid=(1024 / WIDTH) block=WIDTH shared=65536 args=(x, y, 2.0)
extern "C" __global__ void twice(const float* x, float* y, float factor) {
  extern __shared__ float tile[];
  int i = blockIdx.x * WIDTH + threadIdx.x;
  tile[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = factor * tile[threadIdx.x];
)" + extra +
         "}\n";
}

Floats Ramp() {
  Floats values(1024);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

Floats Scaled(Floats values, float factor) {
  for (float& value : values) value *= factor;
  return values;
}

constexpr char kMixedPlan[] = R"(//@ mtmc 1 cuda
//@ input  x f32[256,128]
//@ weight w f32[64,128]
//@ buffer h f32[256,64]
//@ buffer g f32[256,64]
//@ output y f32[256,64]
//@ call   aten::linear(x, w, None) -> h precision=ieee
//@ launch add_one grid=64 block=256 args=(h, g)
//@ call   aten::relu(g) -> y
extern "C" __global__ void add_one(const float* h, float* g) {
  int i = blockIdx.x * 256 + threadIdx.x;
  g[i] = h[i] + 1.0f;
}
)";

std::string Capturing(std::string text) {
  const size_t first = text.find('\n') + 1;
  return text.insert(first, "//@ capture\n");
}

// All weights 1: every output is the sum of a row plus one, at least 0.
void CheckMixed(Gpu& gpu, const std::string& text) {
  auto plan = gpu.Load(text, {"aten::linear", "aten::relu"});
  INFO((plan.ok() ? "" : plan.failure().message));
  REQUIRE(plan.ok());
  Floats x(256UL * 128, 0.5F);
  x[0] = -1000;
  const Floats w(64UL * 128, 1.0F);

  const MaybeFailure failure = (*plan)->Execute({{"x", Bytes(x)}, {"w", Bytes(w)}}, 0xA5);
  INFO(Describe(failure));
  REQUIRE_FALSE(failure);
  for (int i = 0; i < 5; ++i) REQUIRE((*plan)->Time(/*is_cold=*/true).ok());

  const Floats y = OutputOf(**plan);
  CHECK(y[0] == 0.0F);
  CHECK(y[64] == 65.0F);
  CHECK(y[256 * 64 - 1] == 65.0F);
  CHECK_FALSE((*plan)->CheckMemory());
}

}  // namespace

TEST_CASE("The device tells its facts and rates", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  const DeviceFacts& facts = gpu->backend.facts;
  std::cout << facts.product << " " << facts.uuid << " sm_" << facts.compute_capability << ", "
            << facts.compute_units << " multiprocessors, cache " << facts.cache_bytes
            << " bytes, shared " << facts.shared_memory_per_block_bytes << " bytes, driver "
            << facts.driver_version << ", " << facts.toolchain_version << "\n"
            << "memory " << facts.memory_bandwidth_bytes_per_second / 1e12 << " TB/s, fp32 "
            << facts.fp32_flops_per_second / 1e12 << " TFLOP/s, tf32 "
            << facts.tf32_flops_per_second / 1e12 << " TFLOP/s, counters " << gpu->backend.counters
            << std::endl;

  CHECK(facts.has_library_calls);
  CHECK(facts.memory_bandwidth_bytes_per_second > 1e11);
  CHECK(facts.fp32_flops_per_second > 1e12);
  CHECK(facts.tf32_flops_per_second > facts.fp32_flops_per_second);
}

TEST_CASE("A launch with much shared memory gives the right result", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto plan = gpu->Load(DoubleProgram());
  REQUIRE(plan.ok());
  const Floats x = Ramp();

  const MaybeFailure failure = (*plan)->Execute({{"x", Bytes(x)}}, 0xA5);

  INFO(Describe(failure));
  REQUIRE_FALSE(failure);
  CHECK(OutputOf(**plan) == Scaled(x, 2));
}

TEST_CASE("Outputs on the GPU stay until the execution after the next one", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto plan = gpu->Load(DoubleProgram());
  REQUIRE(plan.ok());
  REQUIRE((*plan)->outputs_stay());
  const Floats ramp = Ramp();
  Floats values(ramp.size());
  const Buffer* before = nullptr;

  for (const float factor : {1.0F, 3.0F, 5.0F, 7.0F}) {
    REQUIRE_FALSE((*plan)->Execute({{"x", Bytes(Scaled(ramp, factor))}}, 0xA5));
    const Buffer* now = (*plan)->Outputs()->front().buffer;
    if (before) {
      REQUIRE_FALSE(before->Download(std::as_writable_bytes(std::span(values))));
      CHECK(values == Scaled(ramp, 2 * (factor - 2)));
    }
    before = now;
  }
}

TEST_CASE("Memory of the GPU that is given back is overwritten and used again", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  Floats values(1 << 20, 1.0F);
  auto first = gpu->backend.device->Allocate(static_cast<int64_t>(Bytes(values).size()));
  REQUIRE(first.ok());
  REQUIRE_FALSE((*first)->Upload(Bytes(values)));
  const void* address = (*first)->address();

  first->reset();
  auto second = gpu->backend.device->Allocate(static_cast<int64_t>(Bytes(values).size()));

  REQUIRE(second.ok());
  CHECK((*second)->address() == address);
  REQUIRE_FALSE((*second)->Download(std::as_writable_bytes(std::span(values))));
  CHECK(std::count(values.begin(), values.end(), 1.0F) == 0);
}

TEST_CASE("A write beside a GPU buffer is found", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto plan = gpu->Load(DoubleProgram("if (i == 0) y[1030] = 1;"));
  REQUIRE(plan.ok());

  const MaybeFailure failure = (*plan)->Execute({{"x", Bytes(Ramp())}}, 0xA5);

  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kOutOfBounds);
  CHECK_FALSE(failure->is_context_lost);
}

TEST_CASE("A changed input on the GPU is found", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto plan = gpu->Load(DoubleProgram("if (i == 5) ((float*)x)[1023] = -1;"));
  REQUIRE(plan.ok());

  const MaybeFailure failure = (*plan)->Execute({{"x", Bytes(Ramp())}}, 0xA5);

  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kInputChanged);
}

TEST_CASE("A launch beyond the device's limits fails and the context survives", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  std::string text = DoubleProgram();
  text.replace(text.find("shared=65536"), 12, "shared=999999");
  auto plan = gpu->Load(text);
  REQUIRE(plan.ok());

  const MaybeFailure failure = (*plan)->Execute({{"x", Bytes(Ramp())}}, 0xA5);

  REQUIRE(failure);
  CHECK(failure->kind == Failure::Kind::kLaunch);
  CHECK_FALSE(failure->is_context_lost);
}

TEST_CASE("A captured plan of launches gives the right result", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto plan = gpu->Load(DoubleProgram("", "//@ capture\n"));
  REQUIRE(plan.ok());
  const Floats x = Ramp();

  const MaybeFailure failure = (*plan)->Execute({{"x", Bytes(x)}}, 0xA5);

  INFO(Describe(failure));
  REQUIRE_FALSE(failure);
  auto sample = (*plan)->Time(/*is_cold=*/true);
  REQUIRE(sample.ok());
  CHECK(sample->seconds > 0);
  CHECK(OutputOf(**plan) == Scaled(x, 2));
}

TEST_CASE("Library calls and launches mix in one plan", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  CheckMixed(*gpu, kMixedPlan);
}

TEST_CASE("Library calls and launches are captured as one graph", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  CheckMixed(*gpu, Capturing(kMixedPlan));
}

TEST_CASE("A plan of library calls alone runs captured", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto plan = gpu->Load(R"(//@ mtmc 1 cuda
//@ input x f32[8,16,32,32]
//@ weight w f32[16,16,3,3]
//@ buffer h f32[8,16,32,32]
//@ output y f32[8,16]
//@ capture
//@ call aten::conv2d(x, w, None, 1, 1) -> h precision=tf32
//@ call aten::mean(h, [2, 3]) -> y
)",
                        {"aten::conv2d", "aten::mean"});
  REQUIRE(plan.ok());
  const Floats x(8UL * 16 * 32 * 32, 1.0F);
  const Floats w(16UL * 16 * 9, 0.0F);

  const MaybeFailure failure = (*plan)->Execute({{"x", Bytes(x)}, {"w", Bytes(w)}}, 0xFF);

  INFO(Describe(failure));
  REQUIRE_FALSE(failure);
  REQUIRE((*plan)->Time(/*is_cold=*/true).ok());
  CHECK(OutputOf(**plan) == Floats(8UL * 16, 0.0F));
}

TEST_CASE("A library call makes its tensor on the device that a traced graph leaves open",
          "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto plan = gpu->Load(R"(//@ mtmc 1 cuda
//@ input x f32[4,4]
//@ buffer r f32[4,4]
//@ output y f32[4,4]
//@ call aten::full.default([4, 4], 2.0, None, None, None) -> r
//@ call aten::mm.default(x, r) -> y
)",
                        {"aten::full", "aten::mm"});
  REQUIRE(plan.ok());
  const Floats x(16, 1.0F);

  const MaybeFailure failure = (*plan)->Execute({{"x", Bytes(x)}}, 0xFF);

  INFO(Describe(failure));
  REQUIRE_FALSE(failure);
  CHECK(OutputOf(**plan) == Floats(16, 8.0F));
}

TEST_CASE("A profile tells each step's time and resources", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto plan = gpu->Load(kMixedPlan, {"aten::linear", "aten::relu"});
  REQUIRE(plan.ok());
  const Floats x(256UL * 128, 0.5F);
  const Floats w(64UL * 128, 1.0F);
  REQUIRE_FALSE((*plan)->Execute({{"x", Bytes(x)}, {"w", Bytes(w)}}, 0xA5));
  const double before = MedianOf(**plan);

  auto profile = (*plan)->Profile(CounterScope::kNone);

  REQUIRE(profile.ok());
  const std::vector<StepActivity>& activity = profile->activities;
  REQUIRE(activity.size() == 3);
  for (const StepActivity& step : activity) CHECK(step.seconds > 0);
  CHECK(activity[1].registers_per_thread > 0);
  CHECK(activity[1].occupancy_ratio > 0);
  const double after = MedianOf(**plan);
  std::cout << "profile from " << gpu->backend.device->profile_source() << ": "
            << activity[0].seconds * 1e6 << ", " << activity[1].seconds * 1e6 << ", "
            << activity[2].seconds * 1e6 << " us; plan before " << before * 1e6 << " us, after "
            << after * 1e6 << " us" << std::endl;
  CHECK(gpu->backend.device->profile_source() == "cupti");
  // A profiler that stays attached doubles the time of a plan this short.
  CHECK(after < 1.5 * before);
  auto again = (*plan)->Profile(CounterScope::kNone);
  REQUIRE(again.ok());
  CHECK(again->activities.front().seconds > 0);
}

namespace {

// Two runner processes and a builder.
struct Processes {
  explicit Processes(const Gpu& gpu, const std::string& scratch)
      : builder({.program = ProgramPath("mtmc-builder"),
                 .scratch = scratch + "/builder",
                 .tools = gpu.tools}),
        first({.program = ProgramPath("mtmc-runner"),
               .scratch = scratch + "/first",
               .tools = gpu.tools}),
        second({.program = ProgramPath("mtmc-runner"),
                .scratch = scratch + "/second",
                .tools = gpu.tools}) {}

  void Open(RunnerClient& runner) {
    pipe::v1::RunnerRequest request;
    request.mutable_open()->set_backend(v1::DIALECT_CUDA);
    request.mutable_open()->set_aten_plugin(CudaPlugin());
    const auto reply = runner.Call(request, absl::Seconds(60));
    INFO(reply.detail);
    REQUIRE(reply.is_answered());
    device = reply.response.opened().device();
  }

  void Load(RunnerClient& runner, const std::string& text) {
    pipe::v1::BuilderRequest build;
    build.mutable_build()->set_program(text);
    *build.mutable_build()->mutable_device() = device;
    const auto built = builder.Call(build, absl::Seconds(60));
    INFO(built.detail);
    REQUIRE(built.is_answered());
    REQUIRE_FALSE(built.response.built(0).has_failure());
    pipe::v1::RunnerRequest load;
    load.mutable_load()->set_program(text);
    load.mutable_load()->set_binary(built.response.built(0).binary());
    const auto reply = runner.Call(load, absl::Seconds(60));
    INFO(reply.response.ShortDebugString());
    REQUIRE(reply.is_answered());
    REQUIRE_FALSE(reply.response.has_failure());
  }

  Reply<pipe::v1::RunnerResponse> Execute(RunnerClient& runner, pipe::v1::SharedTensor x) {
    pipe::v1::RunnerRequest request;
    x.set_name("x");
    *request.mutable_execute()->add_inputs() = std::move(x);
    request.mutable_execute()->set_poison(0xA5);
    return runner.Call(request, absl::Seconds(20));
  }

  BuilderClient builder;
  RunnerClient first;
  RunnerClient second;
  v1::DeviceFacts device;
};

pipe::v1::SharedTensor WriteInput(const std::string& path, const Floats& values) {
  auto mapping = SharedMapping::Create(path, static_cast<int64_t>(Bytes(values).size()));
  REQUIRE(mapping.ok());
  std::memcpy(mapping->bytes().data(), values.data(), mapping->bytes().size());
  pipe::v1::SharedTensor tensor;
  tensor.mutable_file()->set_path(path);
  return tensor;
}

}  // namespace

TEST_CASE("A tensor goes from process to process on the GPU", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  Processes processes(*gpu, folder->path());
  processes.Open(processes.first);
  processes.Open(processes.second);
  processes.Load(processes.first, DoubleProgram());
  processes.Load(processes.second, DoubleProgram());

  const auto first = processes.Execute(processes.first, WriteInput(folder->path() / "x", Ramp()));
  INFO(first.response.ShortDebugString());
  REQUIRE(first.response.has_outputs());
  REQUIRE(first.response.outputs().outputs(0).has_cuda_ipc());
  const auto second = processes.Execute(processes.second, first.response.outputs().outputs(0));
  INFO(second.response.ShortDebugString());
  REQUIRE(second.response.has_outputs());
  auto buffer = gpu->backend.device->Allocate(4096);
  REQUIRE(buffer.ok());
  const pipe::v1::CudaIpcMemory& memory = second.response.outputs().outputs(0).cuda_ipc();
  REQUIRE_FALSE(
      (*buffer)->CopyFrom(PeerMemory{.handle = memory.handle(), .offset_bytes = memory.offset()}));
  REQUIRE_FALSE(gpu->backend.device->ClosePeers());

  Floats y(1024);
  REQUIRE_FALSE((*buffer)->Download(std::as_writable_bytes(std::span(y))));
  CHECK(y == Scaled(Ramp(), 4));
}

TEST_CASE("A fault on the GPU loses the runner's context and no more", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  Processes processes(*gpu, folder->path());
  processes.Open(processes.first);
  const pipe::v1::SharedTensor x = WriteInput(folder->path() / "x", Ramp());

  processes.Load(processes.first, DoubleProgram("if (i == 0) y[1L << 44] = 1;"));
  const auto fault = processes.Execute(processes.first, x);
  processes.Load(
      processes.first,
      DoubleProgram("while (i == 0 && *(volatile float*)y != -77.0f) __nanosleep(1000);"));
  pipe::v1::RunnerRequest request;
  *request.mutable_execute()->add_inputs() = x;
  request.mutable_execute()->mutable_inputs(0)->set_name("x");
  const auto hung = processes.first.Call(request, absl::Seconds(5));
  processes.Load(processes.first, DoubleProgram());
  const auto next = processes.Execute(processes.first, x);

  CHECK(fault.response.failure().kind() == v1::Failure::KIND_OUT_OF_BOUNDS);
  CHECK(fault.response.is_context_lost());
  CHECK(hung.ending == Reply<pipe::v1::RunnerResponse>::Ending::kTimedOut);
  CHECK(next.response.has_outputs());
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
//
// Profiles on a real GPU against counts by hand: prints every metric.
#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/temp_dir.h"
#include "common/profile/metric_table.h"
#include "common/profile/profile_text.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/builder/client.h"
#include "worker/runner/client.h"
#include "worker/runner/gpu_fixture.h"
#include "worker/runner/profile.h"
#include "worker/runner/shared_file.h"

namespace mtmc::worker {
namespace {

using Catch::Matchers::WithinRel;

// A measured count may differ from a count by hand by this much.
constexpr double kAgreement = 0.02;

// Of a kernel that uses tensor cores at all. Others count some cycles too: 1.3e-4 on
// an H200, where a small product with tensor cores has 0.07.
constexpr double kBusyTensorPipe = 0.01;

void Print(const std::string& name, const v1::Profile& profile) {
  std::cout << "-- " << name << ": " << profile.passes() << " passes, missing '"
            << profile.missing_counters() << "'\n";
  for (const profile::Metric& metric : profile::MetricTable()) {
    const std::string key(metric.name);
    if (!profile.metrics().contains(key)) continue;
    const double value = profile.metrics().at(key);
    std::cout << absl::StrFormat("   %-28s %16.6g  %s\n", key, value,
                                 profile::FormatMetric(metric.name, value));
  }
  std::cout << profile::DescribeProfile(profile) << std::flush;
}

// Where the time of a profile goes is in the log.
void LogDetails() {
  [[maybe_unused]] static const bool is_done = [] {
    base::InitLogging({.program = "profile_gpu_test", .level = base::LogLevel::kDebug});
    return true;
  }();
}

// Executes, counts and prints; the seconds are those of the profile alone.
v1::Profile ProfileOf(Gpu& gpu, const std::string& name, const std::string& text,
                      const std::map<std::string, Floats>& inputs,
                      std::vector<std::string> allowed = {}) {
  LogDetails();
  auto plan = gpu.Load(text, std::move(allowed));
  INFO((plan.ok() ? "" : plan.failure().message));
  REQUIRE(plan.ok());
  InputSources sources;
  for (const auto& [input, values] : inputs) sources[input] = Bytes(values);
  const MaybeFailure failure = (*plan)->Execute(sources, 0xA5);
  INFO((failure ? failure->message : ""));
  REQUIRE_FALSE(failure);
  const absl::Time start = absl::Now();
  auto profile = (*plan)->Profile(CounterScope::kAll);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  INFO((profile.ok() ? "" : profile.failure().message));
  REQUIRE(profile.ok());
  v1::Profile proto = MakeProfile(**plan, *profile, "cupti");
  Print(absl::StrCat(name, " in ", seconds, " s"), proto);
  return proto;
}

double MetricOf(const v1::Profile& profile, const std::string& name) {
  INFO(name);
  REQUIRE(profile.metrics().contains(name));
  return profile.metrics().at(name);
}

// Four floats of each thread, moved once.
std::string CopyProgram(int64_t elements) {
  return absl::StrCat("//@ mtmc 1 cuda\n//@ input x f32[", elements, "]\n//@ output y f32[",
                      elements, "]\n//@ launch copy grid=", elements / 1024,
                      " block=256 args=(x, y)\n",
                      R"(extern "C" __global__ void copy(const float* x, float* y) {
  long i = blockIdx.x * 256L + threadIdx.x;
  ((float4*)y)[i] = ((const float4*)x)[i];
}
)");
}

constexpr char kGemm[] = R"(//@ mtmc 1 cuda
//@ input a f32[1024,1024]
//@ input b f32[1024,1024]
//@ output c f32[1024,1024]
//@ launch gemm grid=(64, 64) block=(16, 16) args=(a, b, c)
extern "C" __global__ void gemm(const float* a, const float* b, float* c) {
  int row = blockIdx.y * 16 + threadIdx.y;
  int column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 1024; ++k) sum += a[row * 1024 + k] * b[k * 1024 + column];
  c[row * 1024 + column] = sum;
}
)";

// Each warp reads 32 sectors for 32 floats, and shared memory from one bank.
constexpr char kStrided[] = R"(//@ mtmc 1 cuda
//@ input x f32[1048576]
//@ output y f32[1048576]
//@ launch strided grid=4096 block=256 args=(x, y)
extern "C" __global__ void strided(const float* x, float* y) {
  __shared__ float tile[32 * 33];
  int i = blockIdx.x * 256 + threadIdx.x;
  float value = x[(i % 32768) * 32 + i / 32768];
  tile[(threadIdx.x % 32) * 32] = value;
  __syncthreads();
  y[i] = value + 0.0f * ((volatile float*)tile)[(threadIdx.x % 32) * 32];
}
)";

// An array with computed indices lies in local memory.
constexpr char kLocal[] = R"(//@ mtmc 1 cuda
//@ input x f32[1048576]
//@ output y f32[1048576]
//@ launch indexed grid=4096 block=256 args=(x, y)
extern "C" __global__ void indexed(const float* x, float* y) {
  int i = blockIdx.x * 256 + threadIdx.x;
  volatile float row[64];
  for (int k = 0; k < 64; ++k) row[(k * 7 + i) & 63] = x[i] + k;
  y[i] = row[(int)(x[i]) & 63];
}
)";

constexpr char kLibraryGemm[] = R"(//@ mtmc 1 cuda
//@ input x f32[2048,2048]
//@ weight w f32[2048,2048]
//@ output y f32[2048,2048]
//@ call aten::linear(x, w, None) -> y precision=tf32
)";

}  // namespace

TEST_CASE("Counted bytes of a copy agree with a count by hand", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  constexpr int64_t kElements = int64_t{1} << 29;
  const Floats x(kElements, 1.0F);

  const v1::Profile profile = ProfileOf(*gpu, "copy of 2 GiB", CopyProgram(kElements), {{"x", x}});

  CHECK_THAT(MetricOf(profile, "dram_bytes"), WithinRel(8.0 * kElements, kAgreement));
  CHECK_THAT(MetricOf(profile, "dram_read_bytes"), WithinRel(4.0 * kElements, kAgreement));
  CHECK_THAT(MetricOf(profile, "load_sectors_per_request"), WithinRel(16.0, kAgreement));
  CHECK_THAT(MetricOf(profile, "load_used_ratio"), WithinRel(1.0, kAgreement));
  CHECK(MetricOf(profile, "dram_throughput_ratio") > 0.6);
  CHECK(profile.missing_counters().empty());
}

TEST_CASE("Counted operations of a GEMM agree with a count by hand", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  const Floats ones(1024UL * 1024, 1.0F);

  const v1::Profile profile = ProfileOf(*gpu, "gemm of 1024^3", kGemm, {{"a", ones}, {"b", ones}});

  CHECK_THAT(MetricOf(profile, "fp32_flops"), WithinRel(2.0 * 1024 * 1024 * 1024, kAgreement));
  CHECK(MetricOf(profile, "tensor_pipe_ratio") < kBusyTensorPipe);
}

TEST_CASE("Counted operations of tensor cores agree with a count by hand", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  const Floats ones(2048UL * 2048, 1.0F);

  const v1::Profile profile = ProfileOf(*gpu, "library gemm of 2048^3", kLibraryGemm,
                                        {{"x", ones}, {"w", ones}}, {"aten::linear"});

  CHECK(MetricOf(profile, "tensor_pipe_ratio") > kBusyTensorPipe);
  CHECK_THAT(MetricOf(profile, "tensor_flops"), WithinRel(2.0 * 2048 * 2048 * 2048, kAgreement));
  CHECK(profile.kernels(0).blocks() > 0);
}

TEST_CASE("Scattered loads, bank conflicts and local arrays show", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  const Floats x(1 << 20, 1.0F);

  const v1::Profile strided = ProfileOf(*gpu, "strided", kStrided, {{"x", x}});
  const v1::Profile local = ProfileOf(*gpu, "local array", kLocal, {{"x", x}});

  CHECK_THAT(MetricOf(strided, "load_sectors_per_request"), WithinRel(32.0, kAgreement));
  CHECK_THAT(MetricOf(strided, "load_used_ratio"), WithinRel(0.125, kAgreement));
  CHECK(MetricOf(strided, "shared_conflict_ratio") > 0.9);
  CHECK(MetricOf(strided, "local_bytes") == 0);
  CHECK(MetricOf(local, "local_bytes") > 64 * 4 * (1 << 20));
}

TEST_CASE("Activity agrees with events, and counting leaves the timing alone", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  for (const int64_t elements : {int64_t{1} << 18, int64_t{1} << 24, int64_t{1} << 27}) {
    auto plan = gpu->Load(CopyProgram(elements));
    REQUIRE(plan.ok());
    const Floats x(static_cast<size_t>(elements), 1.0F);
    REQUIRE_FALSE((*plan)->Execute({{"x", Bytes(x)}}, 0xA5));
    const double before = MedianOf(**plan);
    std::vector<double> seconds;
    std::vector<double> costs;
    for (int i = 0; i < 5; ++i) {
      const absl::Time start = absl::Now();
      auto profile = (*plan)->Profile(CounterScope::kNone);
      REQUIRE(profile.ok());
      costs.push_back(absl::ToDoubleSeconds(absl::Now() - start));
      seconds.push_back(profile->activities.front().seconds);
    }
    auto counted = (*plan)->Profile(CounterScope::kAll);
    REQUIRE(counted.ok());
    const double after = MedianOf(**plan);
    std::sort(seconds.begin(), seconds.end());
    std::sort(costs.begin(), costs.end());
    std::cout << elements << " floats: events " << before * 1e6 << " us, activity "
              << seconds[0] * 1e6 << " to " << seconds[4] * 1e6 << " us, events after counting "
              << after * 1e6 << " us; a profile without counters takes " << costs[2] * 1e3 << " ms"
              << std::endl;
    // Events include the gap before the kernel starts: microseconds.
    CHECK(seconds[2] < before * 1.1 + 2e-6);
    CHECK(seconds[2] > before * 0.9 - 5e-6);
    CHECK(after < before * 1.1 + 2e-6);
    CHECK(after > before * 0.9 - 2e-6);
  }
}

TEST_CASE("A plan of several steps is counted step by step", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  const std::string text = R"(//@ mtmc 1 cuda
//@ capture
//@ input  x f32[1024,1024]
//@ weight w f32[1024,1024]
//@ buffer h f32[1024,1024]
//@ buffer g f32[1024,1024]
//@ output y f32[1024,1024]
//@ call   aten::linear(x, w, None) -> h precision=ieee
//@ launch add_one grid=4096 block=256 args=(h, g)
//@ call   aten::relu(g) -> y
extern "C" __global__ void add_one(const float* h, float* g) {
  int i = blockIdx.x * 256 + threadIdx.x;
  g[i] = h[i] + 1.0f;
}
)";
  const Floats ones(1024UL * 1024, 1.0F);

  const v1::Profile profile = ProfileOf(*gpu, "three steps", text, {{"x", ones}, {"w", ones}},
                                        {"aten::linear", "aten::relu"});

  REQUIRE(profile.kernels_size() == 3);
  double flops = 0;
  for (const v1::KernelActivity& kernel : profile.kernels()) {
    CHECK(kernel.metrics().contains("dram_bytes"));
    CHECK(kernel.occupancy_ratio() > 0);
    if (kernel.metrics().contains("fp32_flops")) flops += kernel.metrics().at("fp32_flops");
  }
  CHECK_THAT(flops, WithinRel(MetricOf(profile, "fp32_flops"), 1e-9));
  CHECK(profile.kernels(1).metrics().at("fp32_flops") == 1024 * 1024);
}

TEST_CASE("A sealed runner process counts too", "[gpu]") {
  Gpu* gpu = Gpu::Find();
  if (!gpu) return;
  auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  RunnerClient runner({.program = ProgramPath("mtmc-runner"),
                       .scratch = folder->path() / "runner",
                       .tools = gpu->tools});
  pipe::v1::RunnerRequest open;
  open.mutable_open()->set_backend(v1::DIALECT_CUDA);
  open.mutable_open()->set_seals(true);
  const auto opened = runner.Call(open, absl::Seconds(60));
  INFO(opened.detail);
  REQUIRE(opened.is_answered());
  std::cout << "sealed runner: " << opened.response.opened().counters() << "\n";
  const std::string text = CopyProgram(1 << 20);
  pipe::v1::RunnerRequest load;
  load.mutable_load()->set_program(text);
  load.mutable_load()->set_binary(gpu->compiler->Compile(text, {}).binary);
  REQUIRE_FALSE(runner.Call(load, absl::Seconds(60)).response.has_failure());
  const std::string path = folder->path() / "x";
  const Floats x(1 << 20, 1.0F);
  auto mapping = SharedMapping::Create(path, static_cast<int64_t>(Bytes(x).size()));
  REQUIRE(mapping.ok());
  std::copy(Bytes(x).begin(), Bytes(x).end(), mapping->bytes().begin());
  pipe::v1::RunnerRequest execute;
  execute.mutable_execute()->set_poison(0xA5);
  pipe::v1::SharedTensor& input = *execute.mutable_execute()->add_inputs();
  input.set_name("x");
  input.mutable_file()->set_path(path);
  REQUIRE(runner.Call(execute, absl::Seconds(60)).response.has_outputs());
  pipe::v1::RunnerRequest request;
  request.mutable_profile()->set_with_counters(true);

  for (const char* name : {"first", "second", "third"}) {
    const auto reply = runner.Call(request, absl::Seconds(60));
    INFO(reply.detail << reply.response.ShortDebugString());
    REQUIRE(reply.response.has_profile());
    const v1::Profile& profile = reply.response.profile();
    Print(absl::StrCat("sealed, ", name, " in ", profile.collection_seconds(), " s"), profile);
    CHECK(profile.missing_counters().empty());
    CHECK(profile.metrics_size() > 25);
  }
}

}  // namespace mtmc::worker

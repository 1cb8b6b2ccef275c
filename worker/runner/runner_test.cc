// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/temp_dir.h"
#include "common/config/python_environment.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/builder/client.h"
#include "worker/runner/client.h"
#include "worker/runner/shared_file.h"

namespace mtmc::worker {
namespace {

using Floats = std::vector<float>;

// Both children over one scratch folder, with a device opened.
class Bench {
 public:
  static std::unique_ptr<Bench> Start() {
    auto folder = base::TempDir::Create();
    REQUIRE(folder.ok());
    std::unique_ptr<Bench> bench(new Bench(*std::move(folder)));
    pipe::v1::RunnerRequest open;
    open.mutable_open()->set_backend(v1::DIALECT_OPENCL);
    const auto reply = bench->runner.Call(open, absl::Seconds(30));
    if (!reply.is_answered()) {
      std::cout << "SKIPPED: " << reply.detail << "\n";
      return nullptr;
    }
    bench->device = reply.response.opened().device();
    return bench;
  }

  pipe::v1::BuilderResponse::Built Build(const std::string& program) {
    pipe::v1::BuilderRequest request;
    request.mutable_build()->set_program(program);
    *request.mutable_build()->mutable_device() = device;
    const auto reply = builder.Call(request, absl::Seconds(30));
    INFO(reply.detail);
    REQUIRE(reply.is_answered());
    return reply.response.built(0);
  }

  // Builds and loads; the program's failure is the response's.
  pipe::v1::RunnerResponse Load(const std::string& program) {
    pipe::v1::RunnerRequest request;
    const auto built = Build(program);
    INFO(built.failure().ShortDebugString());
    REQUIRE_FALSE(built.has_failure());
    request.mutable_load()->set_program(program);
    request.mutable_load()->set_binary(built.binary());
    const auto reply = runner.Call(request, absl::Seconds(30));
    INFO(reply.detail);
    REQUIRE(reply.is_answered());
    return reply.response;
  }

  Reply<pipe::v1::RunnerResponse> Execute(const Floats& x,
                                          absl::Duration timeout = absl::Seconds(30),
                                          int64_t keep_as = 0, bool keep_only = false,
                                          uint64_t content = 0) {
    const std::string path = folder_.path() / "inputs.bin";
    auto mapping = SharedMapping::Create(path, static_cast<int64_t>(x.size() * sizeof(float)));
    REQUIRE(mapping.ok());
    std::memcpy(mapping->bytes().data(), x.data(), mapping->bytes().size());
    pipe::v1::RunnerRequest request;
    pipe::v1::SharedTensor& tensor = *request.mutable_execute()->add_inputs();
    tensor.set_name("x");
    tensor.mutable_file()->set_path(path);
    tensor.set_content(content);
    request.mutable_execute()->set_poison(0xA5);
    request.mutable_execute()->set_keep_as(keep_as);
    request.mutable_execute()->set_keep_only(keep_only);
    request.mutable_execute()->set_with_digest(true);
    return runner.Call(request, timeout);
  }

 private:
  explicit Bench(base::TempDir folder) : folder_(std::move(folder)) {}

  base::TempDir folder_;

 public:
  BuilderClient builder{{.program = MTMC_BINARY_DIR "/mtmc-builder",
                         .scratch = folder_.path() / "builder",
                         .tools = {}}};
  RunnerClient runner{{.program = MTMC_BINARY_DIR "/mtmc-runner",
                       .scratch = folder_.path() / "runner",
                       .tools = {}}};
  v1::DeviceFacts device;
};

std::string Program(const std::string& body) {
  return R"(//@ mtmc 1 opencl
//@ input x f32[256]
//@ output y f32[256]
//@ launch f grid=4 block=64 args=(x, y)
__kernel void f(__global const float* x, __global float* y) {
  int i = get_global_id(0);
)" + body +
         "\n}\n";
}

Floats Read(const pipe::v1::SharedTensor& tensor) {
  Floats values(256);
  auto mapping = SharedMapping::Open(tensor.file().path(), tensor.file().offset(), 1024);
  REQUIRE(mapping.ok());
  std::memcpy(values.data(), mapping->bytes().data(), 1024);
  return values;
}

using Ending = Reply<pipe::v1::RunnerResponse>::Ending;

}  // namespace

TEST_CASE("A program is built in one process and run in another", "[runner]") {
  auto bench = Bench::Start();
  if (!bench) return;
  REQUIRE_FALSE(bench->Load(Program("y[i] = 2 * x[i];")).has_failure());

  const auto executed = bench->Execute(Floats(256, 21.0F));
  pipe::v1::RunnerRequest time;
  time.mutable_time()->set_samples(5);
  time.mutable_time()->set_warmups(2);
  time.mutable_time()->set_is_cold(true);
  const auto timed = bench->runner.Call(time, absl::Seconds(30));
  pipe::v1::RunnerRequest profile;
  profile.mutable_profile();
  const auto profiled = bench->runner.Call(profile, absl::Seconds(30));

  REQUIRE(executed.is_answered());
  CHECK(Read(executed.response.outputs().outputs(0)) == Floats(256, 42.0F));
  CHECK(timed.response.timed().samples_seconds_size() == 5);
  REQUIRE(profiled.response.profile().kernels_size() == 1);
  CHECK(profiled.response.profile().kernels(0).kernel() == "f");
}

TEST_CASE("Inputs that were never executed come last, once", "[runner]") {
  auto bench = Bench::Start();
  if (!bench) return;
  REQUIRE_FALSE(bench->Load(Program("y[i] = 2 * x[i];")).has_failure());
  const auto first = bench->Execute(Floats(256, 1.0F), absl::Seconds(30), 1);
  const auto second = bench->Execute(Floats(256, 2.0F), absl::Seconds(30), 2);
  const auto unseen = bench->Execute(Floats(256, 3.0F), absl::Seconds(30), 3, /*keep_only=*/true);

  pipe::v1::RunnerRequest time;
  time.mutable_time()->set_samples(12);
  time.mutable_time()->set_checked_ratio(1);
  for (const int64_t id : {1, 2, 3, 4}) time.mutable_time()->add_kept(id);
  const auto timed = bench->runner.Call(time, absl::Seconds(30));
  pipe::v1::RunnerRequest publish;
  publish.mutable_publish();
  const auto published = bench->runner.Call(publish, absl::Seconds(30));

  REQUIRE(first.response.outputs().kept() == 1);
  REQUIRE(unseen.response.outputs().kept() == 3);
  CHECK(unseen.response.outputs().outputs_size() == 0);
  REQUIRE(timed.response.timed().checked_size() == 12);
  for (int i = 0; i < 11; ++i) {
    const auto& checked = timed.response.timed().checked(i);
    const auto& expected = checked.kept() == 1 ? first : second;
    CHECK((checked.kept() == 1 || checked.kept() == 2));
    CHECK(checked.digest() == expected.response.outputs().digest());
    // Never the same contents twice in a row.
    if (i > 0) CHECK(checked.kept() != timed.response.timed().checked(i - 1).kept());
  }
  CHECK(timed.response.timed().checked(11).kept() == 3);
  CHECK(Read(published.response.outputs().outputs(0)) == Floats(256, 6.0F));
}

TEST_CASE("A content that has a number is read once", "[runner]") {
  auto bench = Bench::Start();
  if (!bench) return;
  const std::string program = Program("y[i] = 2.0f * x[i];");
  REQUIRE_FALSE(bench->Load(program).has_failure());
  auto result = [&](float value, uint64_t content) {
    const auto reply = bench->Execute(Floats(256, value), absl::Seconds(30), 0, false, content);
    REQUIRE(reply.is_answered());
    REQUIRE_FALSE(reply.response.has_failure());
    return Read(reply.response.outputs().outputs(0)).front();
  };
  CHECK(result(1, 7) == 2);
  // Whoever gives two contents one number gets the first one.
  CHECK(result(5, 7) == 2);
  CHECK(result(5, 8) == 10);
  CHECK(result(6, 0) == 12);

  pipe::v1::RunnerRequest unload;
  unload.mutable_unload();
  REQUIRE(bench->runner.Call(unload, absl::Seconds(30)).is_answered());
  REQUIRE_FALSE(bench->Load(program).has_failure());
  // Later programs find it, too.
  CHECK(result(9, 7) == 2);
}

TEST_CASE("Published outputs are those of the timed runs", "[runner]") {
  auto bench = Bench::Start();
  if (!bench) return;
  REQUIRE_FALSE(bench->Load(Program("y[i] = x[i] + 1;")).has_failure());
  REQUIRE(bench->Execute(Floats(256, 1.0F)).is_answered());
  pipe::v1::RunnerRequest publish;
  publish.mutable_publish();

  const auto reply = bench->runner.Call(publish, absl::Seconds(30));

  REQUIRE(reply.is_answered());
  CHECK(Read(reply.response.outputs().outputs(0)) == Floats(256, 2.0F));
}

TEST_CASE("A write outside the buffers is the candidate's failure", "[runner]") {
  auto bench = Bench::Start();
  if (!bench) return;
  REQUIRE_FALSE(bench->Load(Program("y[i] = x[i]; if (i == 0) y[256] = 1;")).has_failure());

  const auto reply = bench->Execute(Floats(256));

  REQUIRE(reply.is_answered());
  CHECK(reply.response.failure().kind() == v1::Failure::KIND_OUT_OF_BOUNDS);
  CHECK(reply.response.failure().stage() == v1::STAGE_VERIFY);
}

TEST_CASE("A kernel that never ends is killed at the deadline", "[runner]") {
  auto bench = Bench::Start();
  if (!bench) return;
  REQUIRE_FALSE(
      bench->Load(Program("volatile __global float* v = y; while (v[0] != 12345.0f) v[0] = 1.0f;"))
          .has_failure());

  const auto hung = bench->Execute(Floats(256), absl::Seconds(3));
  REQUIRE_FALSE(bench->Load(Program("y[i] = x[i];")).has_failure());
  const auto next = bench->Execute(Floats(256, 3.0F));

  CHECK(hung.ending == Ending::kTimedOut);
  REQUIRE(next.is_answered());
  CHECK(Read(next.response.outputs().outputs(0)) == Floats(256, 3.0F));
}

TEST_CASE("A kernel that crashes ends only its own process", "[runner]") {
  auto bench = Bench::Start();
  if (!bench) return;
  REQUIRE_FALSE(bench->Load(Program("y[i + (1L << 44)] = x[i];")).has_failure());

  const auto crashed = bench->Execute(Floats(256));
  const auto unloaded = bench->Execute(Floats(256));
  REQUIRE_FALSE(bench->Load(Program("y[i] = x[i];")).has_failure());
  const auto next = bench->Execute(Floats(256, 3.0F));

  CHECK(crashed.ending == Ending::kDied);
  CHECK_THAT(crashed.detail, Catch::Contains("SIGSEGV"));
  CHECK(unloaded.response.has_failure());
  CHECK(next.is_answered());
}

TEST_CASE("Nothing is left on the device of a runner that rests", "[runner]") {
  auto bench = Bench::Start();
  if (!bench) return;
  REQUIRE_FALSE(bench->Load(Program("y[i] = x[i];")).has_failure());
  const auto before = bench->Execute(Floats(256, 1.0F), absl::Seconds(30), /*keep_as=*/1);

  bench->runner.Rest();

  CHECK(bench->Execute(Floats(256)).response.has_failure());
  REQUIRE_FALSE(bench->Load(Program("y[i] = x[i];")).has_failure());
  pipe::v1::RunnerRequest kept;
  kept.mutable_execute()->set_kept(1);
  CHECK(bench->runner.Call(kept, absl::Seconds(30)).response.has_failure());
  const auto after = bench->Execute(Floats(256, 3.0F));
  CHECK(after.process != before.process);
  CHECK(Read(after.response.outputs().outputs(0)) == Floats(256, 3.0F));
}

TEST_CASE("A runner measures its device", "[runner]") {
  auto folder = base::TempDir::Create();
  auto environment = config::PythonEnvironment::Probe();
  REQUIRE(folder.ok());
  if (!environment.ok()) {
    std::cout << "SKIPPED: " << environment.status().message() << "\n";
    return;
  }
  RunnerClient runner({.program = MTMC_BINARY_DIR "/mtmc-runner",
                       .scratch = folder->path(),
                       .tools = ToolPaths::From(*environment)});
  pipe::v1::RunnerRequest open;
  open.mutable_open()->set_backend(v1::DIALECT_OPENCL);
  open.mutable_open()->set_aten_plugin(MTMC_BINARY_DIR "/../lib/mtmc_aten.so");
  open.mutable_open()->set_measure_rates(true);

  const auto reply = runner.Call(open, absl::Seconds(50));

  INFO(reply.detail);
  REQUIRE(reply.is_answered());
  const v1::DeviceFacts& facts = reply.response.opened().device();
  CHECK(facts.has_library_calls());
  CHECK(facts.memory_bandwidth_bytes_per_second() > 1e8);
  CHECK(facts.fp32_flops_per_second() > 1e8);
  CHECK(facts.dialects(0) == v1::DIALECT_OPENCL);
  std::cout << facts.ShortDebugString() << std::endl;
}

TEST_CASE("A missing device ends the runner with its reason", "[runner]") {
  auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  RunnerClient runner(
      {.program = MTMC_BINARY_DIR "/mtmc-runner", .scratch = folder->path(), .tools = {}});
  pipe::v1::RunnerRequest open;
  open.mutable_open()->set_backend(v1::DIALECT_OPENCL);
  open.mutable_open()->set_device_index(99);

  const auto reply = runner.Call(open, absl::Seconds(30));

  CHECK(reply.ending == Ending::kDied);
  CHECK_THAT(reply.detail, Catch::Contains("no OpenCL"));
}

TEST_CASE("A call is called off from outside", "[runner]") {
  auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  RunnerClient runner({.program = MTMC_BINARY_DIR "/mtmc-runner",
                       .scratch = folder->path(),
                       .tools = {},
                       .is_cancelled = [] { return true; }});
  pipe::v1::RunnerRequest open;
  open.mutable_open()->set_backend(v1::DIALECT_OPENCL);

  CHECK(runner.Call(open, absl::Seconds(30)).ending == Ending::kCancelled);
}

}  // namespace mtmc::worker

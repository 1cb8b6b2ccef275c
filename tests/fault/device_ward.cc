// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/device_ward.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/config/paths.h"
#include "common/config/python_environment.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "worker/daemon/child_rights.h"
#include "worker/runner/shared_file.h"
#include "worker/sandbox/isolation.h"

namespace mtmc::fault {
namespace {

constexpr int64_t kElements = 256;
constexpr char kBuild[] = MTMC_BINARY_DIR "/..";

// One that nothing takes, for steps that must succeed on a busy machine.
constexpr absl::Duration kPatience = absl::Minutes(2);

std::string Text(v1::Dialect dialect, const std::string& body, const std::string& directives) {
  const bool is_cuda = dialect == v1::DIALECT_CUDA;
  return absl::StrCat("//@ mtmc 1 ", is_cuda ? "cuda" : "opencl",
                      "\n//@ input x f32[256]\n//@ output y f32[256]\n", directives,
                      "//@ launch f grid=4 block=64 args=(x, y)\n",
                      is_cuda ? "extern \"C\" __global__ void f(const float* x, float* y) {\n"
                                "  int i = blockIdx.x * 64 + threadIdx.x;\n  "
                              : "__kernel void f(__global const float* x, __global float* y) {\n"
                                "  int i = get_global_id(0);\n  ",
                      body, "\n}\n");
}

// Nearest rank, in percent, of sorted values.
double AtRank(const std::vector<double>& sorted, int rank) {
  return sorted[(sorted.size() * static_cast<size_t>(rank) + 99) / 100 - 1];
}

worker::ToolPaths FindTools(const absl::StatusOr<config::PythonEnvironment>& python) {
  return python.ok() ? worker::ToolPaths::From(*python) : worker::ToolPaths();
}

}  // namespace

DeviceWard::DeviceWard(base::TempDir folder, const Options& options)
    : folder_(std::move(folder)), options_(options) {
  const auto python = config::PythonEnvironment::Probe();
  const std::string launcher = MTMC_BINARY_DIR "/mtmc-sandbox";
  const worker::Isolation isolation = worker::DecideIsolation(launcher, worker::ProbeHost(launcher),
                                                              worker::IsolationLevel::kConfined);
  level_ = worker::NameOf(isolation.level());
  const std::string root = folder_.path().string();
  for (const char* child : {"/artifacts", "/reference", "/builder", "/runner"}) {
    std::filesystem::create_directories(root + child);
  }
  worker::ChildRights rights = worker::MakeChildRights(python.value_or(config::PythonEnvironment()),
                                                       {.artifacts = root + "/artifacts",
                                                        .reference = root + "/reference",
                                                        .runner = root + "/runner"},
                                                       options.dialect == v1::DIALECT_CUDA);
  // The programs lie beside the test's own folder.
  rights.builder.readable.emplace_back(MTMC_BINARY_DIR);
  rights.runner.readable.emplace_back(MTMC_BINARY_DIR);
  builder_confinement_ = {.rights = rights.builder, .isolation = isolation};
  runner_confinement_ = {.rights = rights.runner, .isolation = isolation};
  builder_ = std::make_unique<worker::BuilderClient>(
      worker::BuilderClient::Options{.program = MTMC_BINARY_DIR "/mtmc-builder",
                                     .scratch = root + "/builder",
                                     .tools = FindTools(python),
                                     .confinement = &builder_confinement_});
  runner_ = std::make_unique<worker::RunnerClient>(
      worker::RunnerClient::Options{.program = MTMC_BINARY_DIR "/mtmc-runner",
                                    .scratch = root + "/runner",
                                    .tools = FindTools(python),
                                    .confinement = &runner_confinement_,
                                    .max_resident_bytes = options.max_resident_bytes});
}

std::unique_ptr<DeviceWard> DeviceWard::Open(const Options& options) {
  auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  std::unique_ptr<DeviceWard> ward(new DeviceWard(*std::move(folder), options));
  pipe::v1::RunnerRequest request;
  auto& open = *request.mutable_open();
  open.set_backend(options.dialect);
  const bool is_cuda = options.dialect == v1::DIALECT_CUDA;
  if (options.has_library) {
    open.set_aten_plugin(absl::StrCat(kBuild, "/lib/mtmc_aten", is_cuda ? "_cuda" : "", ".so"));
  }
  open.set_seals(
      ward->runner_confinement_.isolation.mechanisms.contains(worker::Mechanism::kSeccomp));
  const auto reply = ward->runner_->Call(request, kPatience);
  if (!reply.is_answered()) {
    std::cout << "SKIPPED: " << reply.detail << std::endl;
    return nullptr;
  }
  ward->device_ = reply.response.opened().device();
  const std::string path = ward->folder_.path() / "reference" / "x";
  auto mapping = worker::SharedMapping::Create(path, kElements * int64_t{sizeof(float)});
  REQUIRE(mapping.ok());
  std::fill(mapping->bytes().begin(), mapping->bytes().end(), std::byte{0});
  // The runner may be another user.
  std::filesystem::permissions(path, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  auto& x = *ward->execute_.mutable_execute()->add_inputs();
  x.set_name("x");
  x.mutable_file()->set_path(path);
  ward->execute_.mutable_execute()->set_poison(0xA5);
  return ward;
}

void DeviceWard::Build(const std::string& body, const std::string& directives) {
  const std::string text = Text(options_.dialect, body, directives);
  if (load_.load().program() == text) return;
  pipe::v1::BuilderRequest request;
  request.mutable_build()->set_program(text);
  *request.mutable_build()->mutable_device() = device_;
  request.mutable_build()->add_variants();
  const auto reply = builder_->Call(request, kPatience);
  INFO(reply.detail << reply.response.ShortDebugString());
  REQUIRE(reply.is_answered());
  REQUIRE_FALSE(reply.response.built(0).has_failure());
  load_.mutable_load()->set_program(text);
  load_.mutable_load()->set_binary(reply.response.built(0).binary());
}

worker::Reply<pipe::v1::RunnerResponse> DeviceWard::Run(absl::Duration timeout) {
  auto loaded = Load();
  if (!loaded.is_answered() || loaded.response.has_failure()) return loaded;
  return Execute(timeout);
}

worker::Reply<pipe::v1::RunnerResponse> DeviceWard::Load() {
  return runner_->Call(load_, kPatience);
}

worker::Reply<pipe::v1::RunnerResponse> DeviceWard::Execute(absl::Duration timeout) {
  return runner_->Call(execute_, timeout);
}

bool DeviceWard::AwaitSpare() {
  const absl::Time limit = absl::Now() + kPatience;
  while (!runner_->has_spare() && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(5));
  return runner_->has_spare();
}

Recovery MeasureRecovery(DeviceWard& ward, const BadProgram& bad, int samples) {
  Recovery recovery;
  const auto run_good = [&ward] {
    const auto reply = ward.Run(kPatience);
    INFO(reply.detail << reply.response.ShortDebugString());
    REQUIRE(reply.response.has_outputs());
  };
  const std::string good = "y[i] = x[i] + 1.0f;";
  // What the first launch ever takes is not what a death costs.
  ward.Build(good);
  run_good();
  for (int i = 0; i < samples; ++i) {
    REQUIRE(ward.AwaitSpare());
    ward.Build(bad.body);
    const bool is_hang = bad.deadline != absl::InfiniteDuration();
    REQUIRE(ward.Load().is_answered());
    const absl::Time start = absl::Now();
    const auto ended = ward.Execute(is_hang ? bad.deadline : kPatience);
    CHECK_FALSE(ended.response.has_outputs());
    const absl::Time death = is_hang ? start + bad.deadline : start;
    // Building the next program is not part of the recovery: it goes on meanwhile.
    const absl::Time known = absl::Now();
    ward.Build(good);
    const absl::Time built = absl::Now();
    // The first load replaces the process.
    REQUIRE(ward.Load().is_answered());
    const absl::Time loaded = absl::Now();
    REQUIRE(ward.Execute(kPatience).response.has_outputs());
    const absl::Time done = absl::Now();
    const auto& replacement = ward.runner().last_replacement();
    const absl::Time told = known - replacement.burial;
    recovery.ms.push_back(absl::ToDoubleMilliseconds(done - told - (built - known)));
    recovery.until_known_ms.push_back(absl::ToDoubleMilliseconds(told - death));
    const auto add = [&recovery](const char* part, absl::Duration time) {
      recovery.parts_ms[part].push_back(absl::ToDoubleMilliseconds(time));
    };
    add("burial", replacement.burial);
    add("opening", replacement.opening);
    add("canary", replacement.canary);
    add("load", loaded - built - replacement.opening - replacement.canary);
    add("execute", done - loaded);
    const absl::Time usual = absl::Now();
    run_good();
    recovery.usual_ms = absl::ToDoubleMilliseconds(absl::Now() - usual);
  }
  std::sort(recovery.ms.begin(), recovery.ms.end());
  std::sort(recovery.until_known_ms.begin(), recovery.until_known_ms.end());
  for (auto& [part, ms] : recovery.parts_ms) std::sort(ms.begin(), ms.end());
  return recovery;
}

std::string ToJson(const std::string& name, const DeviceWard& ward, const Recovery& recovery) {
  const auto at = [&](int rank) { return AtRank(recovery.ms, rank); };
  std::string parts;
  for (const auto& [part, ms] : recovery.parts_ms) {
    absl::StrAppend(&parts, parts.empty() ? "" : ", ", "\"", part, "\": [", AtRank(ms, 50), ", ",
                    AtRank(ms, 95), "]");
  }
  return absl::StrCat(
      "{\"fault\": \"", name, "\", \"isolation\": \"", ward.level(),
      "\", \"samples\": ", recovery.ms.size(), ", \"crash_recovery_ms_p50\": ", at(50),
      ", \"crash_recovery_ms_p95\": ", at(95), ", \"crash_recovery_ms_max\": ", recovery.ms.back(),
      ", \"until_known_ms_p50\": ", AtRank(recovery.until_known_ms, 50),
      ", \"until_known_ms_p95\": ", AtRank(recovery.until_known_ms, 95),
      ", \"usual_ms\": ", recovery.usual_ms, ", \"parts_ms_p50_p95\": {", parts, "}}");
}

}  // namespace mtmc::fault

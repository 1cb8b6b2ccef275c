// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <iostream>
#include <optional>
#include <string>

#include "common/base/temp_dir.h"
#include "common/config/python_environment.h"
#include "common/testing/status_matchers.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "worker/builder/builder_service.h"
#include "worker/builder/client.h"
#include "worker/builder/tool_paths.h"

namespace mtmc::worker {
namespace {

// One launch of a kernel with the body `body`; `WIDTH` is tuned.
std::string OpenClProgram(const std::string& body) {
  return R"(//@ mtmc 1 opencl
//@ input x f32[256]
//@ output y f32[256]
//@ tune WIDTH = 32 64
//@ launch f grid=(256 / WIDTH) block=WIDTH args=(x, y)
__kernel void f(__global const float* x, __global float* y) { )" +
         body + " }\n";
}

// The response, or nothing where the host lacks the compiler.
std::optional<pipe::v1::BuilderResponse> Answer(const pipe::v1::BuilderRequest& request,
                                                ToolPaths tools = {}) {
  BuilderService service(std::move(tools));
  auto response = service.Answer(request);
  if (response.ok()) return *std::move(response);
  std::cout << "SKIPPED: " << response.status().message() << "\n";
  return std::nullopt;
}

}  // namespace

TEST_CASE("BuilderService builds every variant", "[builder]") {
  pipe::v1::BuilderRequest request;
  request.set_sequence(7);
  request.mutable_build()->set_program(OpenClProgram("y[get_global_id(0)] = WIDTH;"));
  (*request.mutable_build()->add_variants()->mutable_parameters())["WIDTH"] = 32;
  (*request.mutable_build()->add_variants()->mutable_parameters())["WIDTH"] = 64;

  const auto response = Answer(request);

  if (!response) return;
  CHECK(response->sequence() == 7);
  REQUIRE(response->built_size() == 2);
  CHECK(response->built(1).variant().parameters().at("WIDTH") == 64);
  CHECK(response->built(1).binary().size() > 0);
  CHECK(response->built(0).binary() != response->built(1).binary());
}

TEST_CASE("BuilderService builds the default variant when none is named", "[builder]") {
  pipe::v1::BuilderRequest request;
  request.mutable_build()->set_program(OpenClProgram("y[get_global_id(0)] = WIDTH;"));

  const auto response = Answer(request);

  if (!response) return;
  REQUIRE(response->built_size() == 1);
  CHECK(response->built(0).variant().parameters().at("WIDTH") == 32);
}

TEST_CASE("A text that is no program is a parse failure", "[builder]") {
  pipe::v1::BuilderRequest request;
  request.mutable_build()->set_program("Here is your kernel!");

  const auto response = Answer(request);

  REQUIRE(response);
  CHECK(response->built(0).failure().kind() == v1::Failure::KIND_PARSE);
  CHECK(response->built(0).failure().stage() == v1::STAGE_BUILD);
}

TEST_CASE("A source that does not compile is a compile failure with a log", "[builder]") {
  pipe::v1::BuilderRequest request;
  request.mutable_build()->set_program(OpenClProgram("y[0] = undeclared;"));

  const auto response = Answer(request);

  if (!response) return;
  const v1::Failure& failure = response->built(0).failure();
  CHECK(failure.kind() == v1::Failure::KIND_COMPILE);
  CHECK_THAT(failure.diagnostics(), Catch::Contains("undeclared"));
}

TEST_CASE("BuilderClient talks to a builder process", "[builder]") {
  auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  BuilderClient client(
      {.program = MTMC_BINARY_DIR "/mtmc-builder", .scratch = folder->path(), .tools = {}});
  pipe::v1::BuilderRequest request;
  request.mutable_build()->set_program("no program");

  const auto reply = client.Call(request, absl::Seconds(20));

  INFO(reply.detail);
  REQUIRE(reply.is_answered());
  CHECK(reply.response.built(0).failure().kind() == v1::Failure::KIND_PARSE);
}

TEST_CASE("BuilderClient tells that its program is missing", "[builder]") {
  auto folder = base::TempDir::Create();
  REQUIRE(folder.ok());
  BuilderClient client(
      {.program = "/nonexistent/mtmc-builder", .scratch = folder->path(), .tools = {}});

  const auto reply = client.Call(pipe::v1::BuilderRequest(), absl::Seconds(20));

  CHECK_FALSE(reply.is_answered());
  CHECK_THAT(reply.detail, Catch::Contains("could not be started"));
}

TEST_CASE("CUDA programs are built without a GPU", "[builder]") {
  auto environment = config::PythonEnvironment::Probe();
  if (!environment.ok() || environment->nvrtc_library.empty()) {
    std::cout << "SKIPPED: there is no NVRTC\n";
    return;
  }
  pipe::v1::BuilderRequest request;
  request.mutable_build()->mutable_device()->set_compute_capability(90);
  request.mutable_build()->set_program(R"(//@ mtmc 1 cuda
//@ input x f32[256]
//@ output y f32[256]
//@ tune WIDTH = 32 64
//@ launch f grid=(256 / WIDTH) block=WIDTH args=(x, y)
#include <cuda_fp16.h>
__half twice(__half v) { return v + v; }
extern "C" __global__ void f(const float* x, float* y) {
  int i = blockIdx.x * WIDTH + threadIdx.x;
  y[i] = __half2float(twice(__float2half(x[i])));
}
)");

  const auto response = Answer(request, ToolPaths::From(*environment));

  if (!response) return;
  INFO(response->built(0).failure().ShortDebugString());
  CHECK_FALSE(response->built(0).has_failure());
  CHECK(response->built(0).binary().substr(1, 3) == "ELF");
}

TEST_CASE("A CUDA program without NVRTC is an error that says what to install", "[builder]") {
  pipe::v1::BuilderRequest request;
  request.mutable_build()->mutable_device()->set_compute_capability(90);
  request.mutable_build()->set_program(R"(//@ mtmc 1 cuda
//@ input x f32[256]
//@ output y f32[256]
//@ launch f grid=1 block=256 args=(x, y)
extern "C" __global__ void f(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
)");
  const std::string library = GENERATE("", "/nonexistent/libnvrtc.so.13");
  CAPTURE(library);
  BuilderService service({.nvrtc = library});

  const auto response = service.Answer(request);

  // Not a failure: the candidate may be good.
  CHECK_THAT(response.status(), testing::StatusIs(absl::StatusCode::kUnavailable,
                                                  "install the wheel nvidia-cuda-nvrtc"));
}

}  // namespace mtmc::worker

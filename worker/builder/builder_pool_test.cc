// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/builder_pool.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/temp_dir.h"
#include "common/config/python_environment.h"
#include "worker/builder/tool_paths.h"

namespace mtmc::worker {
namespace {

using Ending = Reply<pipe::v1::BuilderResponse>::Ending;

const std::function<bool()> kNever = [] { return false; };

struct Pool {
  base::TempDir folder = *base::TempDir::Create();
  std::optional<BuilderPool> pool;

  explicit Pool(int num_builders, ToolPaths tools = {}) {
    pool.emplace(BuilderPool::Options{.builder = {.program = MTMC_BINARY_DIR "/mtmc-builder",
                                                  .scratch = (folder.path() / "builder").string(),
                                                  .tools = std::move(tools),
                                                  .num_threads = 1},
                                      .num_builders = num_builders,
                                      .cache = {.folder = (folder.path() / "cache").string()}});
  }

  // Builders that were started, by their folders.
  long num_started() const {
    if (!std::filesystem::exists(folder.path() / "builder")) return 0;
    return std::distance(std::filesystem::directory_iterator(folder.path() / "builder"),
                         std::filesystem::directory_iterator());
  }
};

// NVRTC's paths; nothing where the host has none.
std::optional<ToolPaths> Nvrtc() {
  const auto environment = config::PythonEnvironment::Probe();
  if (environment.ok() && !environment->nvrtc_library.empty()) return ToolPaths::From(*environment);
  std::cout << "SKIPPED: there is no NVRTC\n";
  return std::nullopt;
}

pipe::v1::BuilderRequest CudaRequest(std::vector<int64_t> tiles) {
  pipe::v1::BuilderRequest request;
  auto& build = *request.mutable_build();
  build.mutable_device()->set_compute_capability(90);
  build.set_program(R"(//@ mtmc 1 cuda
//@ input x f32[4096]
//@ output y f32[4096]
//@ tune TILE = 32 64 128 256
//@ launch f grid=(4096 / TILE) block=TILE args=(x, y)
extern "C" __global__ void f(const float* x, float* y) {
  y[blockIdx.x * TILE + threadIdx.x] = x[blockIdx.x * TILE + threadIdx.x] + TILE;
}
)");
  for (const int64_t tile : tiles) {
    (*build.add_variants()->mutable_parameters())["TILE"] = tile;
  }
  return request;
}

}  // namespace

TEST_CASE("BuilderPool gives every variant its own binary, in order", "[builder]") {
  const auto tools = Nvrtc();
  if (!tools) return;
  Pool pool(2, *tools);

  const auto reply = pool.pool->Build(CudaRequest({32, 64, 128}), absl::Seconds(60), kNever);

  INFO(reply.detail);
  REQUIRE(reply.is_answered());
  REQUIRE(reply.response.built_size() == 3);
  for (int i = 0; i < 3; ++i) {
    CHECK(reply.response.built(i).variant().parameters().at("TILE") == (32 << i));
    CHECK(reply.response.built(i).binary().substr(1, 3) == "ELF");
  }
  CHECK(reply.response.built(0).binary() != reply.response.built(1).binary());
  CHECK(pool.num_started() == 2);
}

TEST_CASE("BuilderPool compiles a variant once", "[builder]") {
  const auto tools = Nvrtc();
  if (!tools) return;
  Pool pool(1, *tools);
  const auto first = pool.pool->Build(CudaRequest({32}), absl::Seconds(60), kNever);
  REQUIRE(first.is_answered());
  // Without a builder to ask, only the cache can answer.
  pool.pool.emplace(
      BuilderPool::Options{.builder = {.program = "/nonexistent/mtmc-builder",
                                       .scratch = (pool.folder.path() / "none").string()},
                           .cache = {.folder = (pool.folder.path() / "cache").string()}});

  const auto second = pool.pool->Build(CudaRequest({32}), absl::Seconds(60), kNever);
  const auto other = pool.pool->Build(CudaRequest({64}), absl::Seconds(60), kNever);

  REQUIRE(second.is_answered());
  CHECK(second.response.built(0).binary() == first.response.built(0).binary());
  CHECK_FALSE(other.is_answered());
}

TEST_CASE("BuilderPool serves callers at the same time", "[builder]") {
  Pool pool(2);
  pipe::v1::BuilderRequest request;
  request.mutable_build()->set_program("no program");
  std::vector<Reply<pipe::v1::BuilderResponse>> replies(6);
  {
    std::vector<std::jthread> callers;
    for (auto& reply : replies) {
      callers.emplace_back([&] { reply = pool.pool->Build(request, absl::Seconds(60), kNever); });
    }
  }

  for (const auto& reply : replies) {
    REQUIRE(reply.is_answered());
    CHECK(reply.response.built(0).failure().kind() == v1::Failure::KIND_PARSE);
  }
}

TEST_CASE("BuilderPool ends a build that was called off", "[builder]") {
  Pool pool(1);

  const auto reply = pool.pool->Build(CudaRequest({32}), absl::Seconds(60), [] { return true; });

  CHECK(reply.ending == Ending::kCancelled);
}

TEST_CASE("A host has builders for half of its cores, four at most", "[builder]") {
  CHECK(DefaultBuilders(1) == 1);
  CHECK(DefaultBuilders(2) == 1);
  CHECK(DefaultBuilders(6) == 3);
  CHECK(DefaultBuilders(64) == 4);
}

}  // namespace mtmc::worker

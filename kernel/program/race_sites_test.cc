// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/race_sites.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernel/program/parser.h"
#include "kernel/program/stall.h"

namespace mtmc::kernel {
namespace {

using Catch::Contains;
using Kind = RaceSite::Kind;

// Of a kernel `k` of `x`, a read-only input, `h` and `n`, buffers, and `y`, the output.
std::string Source(const std::string& body) {
  return "//@ mtmc 1 cuda\n"
         "//@ input x f32[8]\n"
         "//@ buffer h f32[8]\n"
         "//@ buffer n i32[1]\n"
         "//@ output y f32[8]\n"
         "//@ launch k grid=2 block=4 args=(x, h, n, y)\n"
         "__device__ int count;\n"
         "extern \"C\" __global__ void k(const float* x, float* h, int* n, float* y) {\n" +
         body + "\n}\n";
}

std::vector<RaceSite> SitesOf(const std::string& body) {
  const ParseResult parsed = ParseProgram(Source(body));
  REQUIRE(parsed.program);
  const LexedSource lexed = LexSource(parsed.program->text, Dialect::kCuda);
  const KernelScan scan = FindKernels(parsed.program->text, Dialect::kCuda);
  REQUIRE(scan.kernels.size() == 1);
  return FindRaceSites(*parsed.program, lexed, scan.kernels.front());
}

std::vector<Kind> KindsOf(const std::string& body) {
  std::vector<Kind> kinds;
  for (const RaceSite& site : SitesOf(body)) kinds.push_back(site.kind);
  return kinds;
}

TEST_CASE("Stores to memory of others are sites, and those to own arrays are not", "[program]") {
  const std::vector<RaceSite> sites = SitesOf(
      "float own[4]; __shared__ float tile[4]; own[0] = x[0]; tile[1] = 2; float v = x[1];\n"
      "if (v > 0) y[0] = v; else *h = 3;\n"
      "for (int i = 0; i < 4; ++i) y[i] += own[i];");

  REQUIRE(sites.size() == 3);
  CHECK(sites[0].target == "y[0]");
  CHECK(sites[1].target == "*h");
  CHECK(sites[2].value == "y[i] + (own[i])");
}

TEST_CASE("A kernel whose blocks see nothing of each other has no sites", "[program]") {
  CHECK(SitesOf("float v = x[threadIdx.x]; y[threadIdx.x] = v * v; h[0] = v;").empty());
}

TEST_CASE("What is no plain store is left alone", "[program]") {
  auto body =
      GENERATE(as<std::string>(), "float4 v = {1, 2, 3, 4};", "bool b = y[0] == 1;", "y[0]++;",
               "if (y[0] == 1) return;", "h[0] = y[0] = 1;", "for (y[0] = 1; y[0] < 3;) {}",
               "y[count++] += 1;", "#if FAST\ny[0] = 1;\n#endif\n", "float* p = y + 1;");
  CAPTURE(body);

  CHECK(SitesOf(body).empty());
}

TEST_CASE("Atomic operations are sites", "[program]") {
  const std::vector<RaceSite> sites =
      SitesOf("const int ticket = atomicAdd(n, 1); if (ticket == 1) atomicExch(&n[0], 0);");

  REQUIRE(sites.size() == 2);
  CHECK(sites[0].is_declaration);
  CHECK_FALSE(sites[1].is_declaration);
}

TEST_CASE("A store that nothing orders before the next one may come after it", "[program]") {
  CHECK(KindsOf("h[0] = x[0]; int t = atomicAdd(n, 1);") == std::vector{Kind::kUnorderedStore});
  CHECK(KindsOf("h[0] = x[0]; int t = atomicAdd(&count, 1);") ==
        std::vector{Kind::kUnorderedStore});
  CHECK(KindsOf("float v = h[1]; h[0] = x[0]; n[0] = 1;") == std::vector{Kind::kUnorderedStore});
}

TEST_CASE("A fence, a barrier or what reads the store keeps its place", "[program]") {
  auto between = GENERATE(as<std::string>(), "__threadfence();", "__syncthreads();",
                          "float v = h[1];", "sync(n);");
  CAPTURE(between);

  for (const Kind kind : KindsOf("h[0] = x[0]; " + between + " atomicAdd(n, 1);")) {
    CHECK(kind != Kind::kUnorderedStore);
  }
  CHECK(KindsOf("h[0] = x[0]; atomicAdd(&h[0], 1);").front() == Kind::kStore);
  CHECK(KindsOf("h[0] = x[0]; y[0] = h[0];").front() == Kind::kStore);
  CHECK(KindsOf("int count = 1; h[0] = x[0]; atomicAdd(&count, 1);").front() == Kind::kStore);
}

TEST_CASE("Two parameters that may be one tensor keep their order", "[program]") {
  std::string text = Source("h[0] = x[0]; y[0] = 1;");
  text.replace(text.find("args=(x, h, n, y)"), 17, "args=(x, y, n, y)");
  const ParseResult parsed = ParseProgram(text);
  REQUIRE(parsed.program);

  CHECK_THAT(WithStalledBlocks(*parsed.program, 7, StallPlaces::kMiddles), !Contains("__mtmc_a0"));
}

TEST_CASE("An unordered store is written behind what follows it", "[program]") {
  const ParseResult parsed = ParseProgram(Source("h[0] = x[0];\nint t = atomicAdd(n, 1);"));
  REQUIRE(parsed.program);

  CHECK_THAT(WithStalledBlocks(*parsed.program, 7, StallPlaces::kMiddles),
             Contains("auto __mtmc_a0 = &(h[0]); auto __mtmc_v0 = x[0];\n"
                      "int t = atomicAdd(n, 1); if (__mtmc_at == 1u) __mtmc_at = __mtmc_wait(); "
                      "*__mtmc_a0 = __mtmc_v0;"));
}

}  // namespace
}  // namespace mtmc::kernel

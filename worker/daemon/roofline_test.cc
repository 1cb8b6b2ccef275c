// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/roofline.h"

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>

#include "worker/daemon/necessary_work.h"

namespace mtmc::worker {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinRel;

v1::DeviceFacts Device() {
  v1::DeviceFacts device;
  device.set_memory_bandwidth_bytes_per_second(1e12);
  device.set_fp32_flops_per_second(1e13);
  device.set_cache_bytes(1000);
  return device;
}

// A problem `y = ops(x, w)` with x and w f32[1000,1000] and an output of 1e6
// elements.
v1::Inspection Problem(const std::string& nodes, const std::string& output) {
  v1::Inspection inspection;
  const std::string square = "type { data_type: DATA_TYPE_F32 shape: [1000, 1000] }";
  const bool parses = google::protobuf::TextFormat::ParseFromString(
      "graph { inputs { name: 'x' " + square + " } inputs { name: 'w' " + square + " } " + nodes +
          " outputs { name: 'y' value: '" + output + "' " + square + " } }",
      &inspection);
  REQUIRE(parses);
  return inspection;
}

std::string Node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& operands) {
  std::string node = "nodes { name: '" + name + "' op: 'aten::" + op + ".default' results: '" +
                     name + "' result_types { data_type: DATA_TYPE_F32 shape: [1000, 1000] } ";
  for (const std::string& operand : operands) node += "arguments { value: '" + operand + "' } ";
  return node + "}";
}

constexpr int64_t kTensor = 4'000'000;

TEST_CASE("SpeedOfLightOf takes the longer of bytes and FLOPs", "[worker]") {
  v1::Inspection inspection;
  inspection.set_minimum_bytes(1'000'000'000);
  inspection.set_contraction_flops(20'000'000'000);

  const SpeedOfLight light = SpeedOfLightOf(inspection, Device());

  CHECK_THAT(light.memory_seconds, WithinRel(1e-3, 1e-9));
  CHECK_THAT(light.seconds(), WithinRel(2e-3, 1e-9));
}

TEST_CASE("Inputs count that every output needs in full", "[worker]") {
  const std::string relu = Node("r", "relu", {"x"});

  CHECK(FindNecessaryWork(Problem(relu, "r")).bytes == 2 * kTensor);
  CHECK(FindNecessaryWork(Problem(Node("a", "add", {"x", "w"}), "a")).bytes == 3 * kTensor);
  CHECK(FindNecessaryWork(Problem(relu + Node("s", "softmax", {"r"}), "s")).bytes == 2 * kTensor);
}

TEST_CASE("What an honest program may leave out is not necessary", "[worker]") {
  const std::string product = Node("m", "matmul", {"x", "w"});

  // A slice, a gather and a mask, alone and after an operator that reads all.
  for (const char* op : {"slice", "embedding", "triu", "masked_fill", "max_pool2d"}) {
    CHECK(FindNecessaryWork(Problem(Node("p", op, {"x", "w"}), "p")).bytes == kTensor);
    const NecessaryWork work = FindNecessaryWork(Problem(product + Node("p", op, {"m"}), "p"));
    CHECK(work.bytes == kTensor);
    CHECK(work.flops == 0);
  }
  CHECK(FindNecessaryWork(Problem(Node("p", "mul", {"x", "w"}), "p")).bytes == kTensor);
  // A value that nothing reads.
  CHECK(FindNecessaryWork(Problem(product + Node("r", "relu", {"x"}), "r")).bytes == 2 * kTensor);
}

TEST_CASE("Products count only where no algebra avoids them", "[worker]") {
  const std::string product = Node("m", "matmul", {"x", "w"});

  CHECK(FindNecessaryWork(Problem(product, "m")).flops == 2'000'000'000);
  CHECK(FindNecessaryWork(Problem(product + Node("g", "gelu", {"m"}), "g")).flops == 2'000'000'000);
  CHECK(FindNecessaryWork(Problem(product + Node("s", "sum", {"m"}), "s")).flops == 0);
  CHECK(FindNecessaryWork(Problem(product + Node("n", "mm", {"m", "w"}), "n")).flops == 0);
  CHECK(FindNecessaryWork(Problem(Node("d", "diag", {"x"}) + Node("n", "mm", {"d", "w"}), "n"))
            .flops == 0);
}

TEST_CASE("A strided convolution need not read its input", "[worker]") {
  v1::Inspection inspection = Problem(Node("c", "conv2d", {"x", "w", "x"}), "c");
  v1::GraphNode& node = *inspection.mutable_graph()->mutable_nodes(0);
  node.mutable_arguments(2)->mutable_none();
  node.add_arguments()->mutable_list()->add_elements()->set_int_value(1);
  CHECK(FindNecessaryWork(inspection).bytes == 3 * kTensor);

  node.mutable_arguments(3)->mutable_list()->mutable_elements(0)->set_int_value(2);
  CHECK(FindNecessaryWork(inspection).bytes == 2 * kTensor);
}

TEST_CASE("A degenerate problem needs its outputs alone", "[worker]") {
  v1::Inspection inspection = Problem(Node("m", "matmul", {"x", "w"}), "m");
  inspection.add_passing_probes("zeros");

  CHECK(FindNecessaryWork(inspection).bytes == kTensor);
  CHECK(FindNecessaryWork(inspection).flops == 0);
}

TEST_CASE("A time below what memory allows is impossible when the cache is cold", "[worker]") {
  const v1::Inspection inspection = Problem(Node("r", "relu", {"x"}), "r");

  // 8 MB at 1 TB/s: 8 us.
  CHECK_THAT(WhyImpossible(inspection, Device(), true, 4e-6), Contains("memory needs at least"));
  CHECK(WhyImpossible(inspection, Device(), true, 5e-6).empty());
  CHECK(WhyImpossible(inspection, Device(), false, 1e-9).empty());
}

TEST_CASE("A problem that fits into the cache can be as fast as it likes", "[worker]") {
  v1::DeviceFacts device = Device();
  device.set_cache_bytes(kTensor);

  CHECK(WhyImpossible(Problem(Node("r", "relu", {"x"}), "r"), device, true, 1e-12).empty());
}

TEST_CASE("A product ten times faster than the fastest unit is impossible", "[worker]") {
  const v1::Inspection inspection = Problem(Node("m", "matmul", {"x", "w"}), "m");

  // 2 GFLOP at 10 TFLOP/s: 200 us.
  CHECK_THAT(WhyImpossible(inspection, Device(), false, 15e-6), Contains("no unit of the device"));
  CHECK(WhyImpossible(inspection, Device(), false, 25e-6).empty());
}

TEST_CASE("Nothing is impossible on a device whose rates are unknown", "[worker]") {
  CHECK(WhyImpossible(Problem(Node("m", "matmul", {"x", "w"}), "m"), {}, true, 1e-12).empty());
}

TEST_CASE("Explain names launches when the device is mostly idle", "[worker]") {
  v1::Profile profile;
  profile.add_kernels()->set_seconds(1e-4);

  Explain({.memory_seconds = 1e-4}, 1e-3, profile);

  CHECK(profile.limit() == v1::Profile::LIMIT_LATENCY);
  CHECK_THAT(profile.speed_of_light_ratio(), WithinRel(0.1, 1e-9));
  CHECK_THAT(profile.summary(), Contains("the device is busy only 10 % of the time"));
}

TEST_CASE("Explain takes the limit of the longest kernel from its counters", "[worker]") {
  v1::Profile profile;
  v1::KernelActivity& kernel = *profile.add_kernels();
  kernel.set_kernel("copy");
  kernel.set_seconds(0.9e-3);
  kernel.set_share_ratio(0.9);
  (*kernel.mutable_metrics())["fma_pipe_ratio"] = 0.75;
  profile.add_kernels()->set_seconds(0.1e-3);

  Explain({.memory_seconds = 2e-4}, 1e-3, profile);

  CHECK(profile.limit() == v1::Profile::LIMIT_COMPUTE);
  CHECK(profile.summary() ==
        "20 % of the speed of light; the problem is bound by memory (at least 0.2 ms); "
        "copy takes 90 % of the time: the FP32 pipe is at 75 % of its peak");
}

TEST_CASE("Explain says what it can without a roofline", "[worker]") {
  v1::Profile profile;
  profile.add_kernels()->set_kernel("k");
  profile.mutable_kernels(0)->set_seconds(1e-3);
  profile.mutable_kernels(0)->set_share_ratio(1);

  Explain({}, 1e-3, profile);

  CHECK(profile.summary() == "k takes 100 % of the time");
  CHECK(profile.limit() == v1::Profile::LIMIT_UNSPECIFIED);
}

}  // namespace
}  // namespace mtmc::worker

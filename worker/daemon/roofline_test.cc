// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/roofline.h"

#include <catch2/catch.hpp>

namespace mtmc::worker {
namespace {

using Catch::Matchers::WithinRel;

v1::DeviceFacts Device() {
  v1::DeviceFacts device;
  device.set_memory_bandwidth_bytes_per_second(1e12);
  device.set_fp32_flops_per_second(1e13);
  device.set_cache_bytes(1000);
  return device;
}

TEST_CASE("SpeedOfLightOf takes the longer of bytes and FLOPs", "[worker]") {
  v1::Inspection inspection;
  inspection.set_minimum_bytes(1'000'000'000);
  inspection.set_contraction_flops(20'000'000'000);

  const SpeedOfLight light = SpeedOfLightOf(inspection, Device());

  CHECK_THAT(light.memory_seconds, WithinRel(1e-3, 1e-9));
  CHECK_THAT(light.seconds(), WithinRel(2e-3, 1e-9));
}

TEST_CASE("IsImpossible refuses a time below what bandwidth allows", "[worker]") {
  v1::Inspection inspection;
  inspection.set_minimum_bytes(1'000'000'000);

  CHECK(IsImpossible(inspection, Device(), 0.1e-3));
  CHECK_FALSE(IsImpossible(inspection, Device(), 0.9e-3));
}

TEST_CASE("IsImpossible accepts any time of a problem that fits in the cache", "[worker]") {
  v1::Inspection inspection;
  inspection.set_minimum_bytes(2000);

  CHECK_FALSE(IsImpossible(inspection, Device(), 1e-12));
}

TEST_CASE("Explain names launches when the device is mostly idle", "[worker]") {
  v1::Profile profile;
  profile.add_kernels()->set_seconds(1e-4);

  Explain({.memory_seconds = 1e-4}, 1e-3, profile);

  CHECK(profile.limit() == "latency");
  CHECK_THAT(profile.speed_of_light_ratio(), WithinRel(0.1, 1e-9));
}

}  // namespace
}  // namespace mtmc::worker

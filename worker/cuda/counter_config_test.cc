// SPDX-License-Identifier: Apache-2.0
//
// CUPTI itself, without a device: it knows every chip's counters.
#include "worker/cuda/counter_config.h"

#include <catch2/catch.hpp>
#include <iostream>

#include "common/config/python_environment.h"
#include "common/testing/status_matchers.h"

namespace mtmc::worker {
namespace {

using profile::CounterSet;
using testing::IsOk;

// Null where the machine has no CUPTI.
const CuptiApi* FindCupti() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // It opens a library of its own in a way that a sanitizer's runtime refuses.
  std::cout << "SKIPPED: CUPTI does not load under a sanitizer\n";
  return nullptr;
#endif
  const auto environment = config::PythonEnvironment::Probe();
  if (environment.ok()) {
    if (auto api = OpenCupti(environment->cupti_library); api.ok()) return *api;
  }
  std::cout << "SKIPPED: there is no CUPTI\n";
  return nullptr;
}

int PassesOf(const CuptiApi& api, CounterSet set) {
  auto config = CounterConfig::Create(api, {.chip = "GH100", .counters = profile::CountersOf(set)});
  REQUIRE_THAT(config.status(), IsOk());
  INFO((config.value()->missing().empty() ? "" : config.value()->missing().front()));
  CHECK(config.value()->missing().empty());
  return config.value()->passes();
}

TEST_CASE("A Hopper chip has every counter, in few passes", "[cuda]") {
  const CuptiApi* api = FindCupti();
  if (!api) return;

  CHECK(PassesOf(*api, CounterSet::kHardware) <= 5);
  CHECK(PassesOf(*api, CounterSet::kInstrumented) == 1);
  CHECK(PassesOf(*api, CounterSet::kTensor) <= 4);
}

TEST_CASE("A counter that the chip lacks is left out by name", "[cuda]") {
  const CuptiApi* api = FindCupti();
  if (!api) return;

  auto config = CounterConfig::Create(
      *api, {.chip = "GH100", .counters = {"dram__bytes_read.sum", "dram__wishes.sum"}});

  REQUIRE_THAT(config.status(), IsOk());
  CHECK((*config)->missing() == std::vector<std::string>{"dram__wishes.sum"});
  CHECK((*config)->names().size() == 1);
  CHECK((*config)->passes() == 1);
}

TEST_CASE("An unknown chip is an error", "[cuda]") {
  const CuptiApi* api = FindCupti();
  if (!api) return;

  CHECK_FALSE(
      CounterConfig::Create(*api, {.chip = "GX900", .counters = {"dram__bytes_read.sum"}}).ok());
}

}  // namespace
}  // namespace mtmc::worker

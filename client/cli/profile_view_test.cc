// SPDX-License-Identifier: Apache-2.0
#include "client/cli/profile_view.h"

#include <catch2/catch.hpp>
#include <sstream>

namespace mtmc::client {
namespace {

using Catch::Matchers::Contains;

v1::KernelActivity& AddKernel(v1::Profile& profile, const std::string& name, double seconds) {
  v1::KernelActivity& kernel = *profile.add_kernels();
  kernel.set_kernel(name);
  kernel.set_seconds(seconds);
  return kernel;
}

std::string Drawn(const v1::Profile& profile) {
  std::ostringstream out;
  PrintProfile(profile, out);
  return out.str();
}

TEST_CASE("A profile without counters says why", "[cli]") {
  v1::Profile profile;
  CHECK(Drawn(profile).empty());
  profile.set_source("events");
  profile.set_missing_counters("there is no CUPTI");
  AddKernel(profile, "copy", 12.5e-6);

  const std::string drawn = Drawn(profile);

  CHECK_THAT(drawn, Contains("profile (events)\n"));
  CHECK_THAT(drawn, Contains("copy"));
  CHECK_THAT(drawn, Contains("12.5 us"));
  CHECK_THAT(drawn, Contains("no counters: there is no CUPTI"));
}

TEST_CASE("Counters are drawn by group, for the plan and its longest kernels", "[cli]") {
  v1::Profile profile;
  profile.set_source("cupti");
  profile.set_passes(6);
  profile.set_collection_seconds(0.2);
  profile.set_summary("20 % of the speed of light");
  (*profile.mutable_metrics())["dram_throughput_ratio"] = 0.5;
  (*profile.mutable_metrics())["stall_barrier_ratio"] = 0.25;
  for (const char* name : {"first", "second", "third", "fourth", "fifth"}) {
    v1::KernelActivity& kernel = AddKernel(profile, name, 1e-6 * (profile.kernels_size() + 1));
    (*kernel.mutable_metrics())["dram_throughput_ratio"] = 0.1 * profile.kernels_size();
    (*kernel.mutable_metrics())["warps_active_ratio"] = 0.4;
  }

  const std::string drawn = Drawn(profile);

  CHECK_THAT(drawn, Contains("6 passes for counters, 200 ms"));
  CHECK_THAT(drawn, Contains("20 % of the speed of light\n"));
  CHECK_THAT(drawn, Contains("memory"));
  CHECK_THAT(drawn, Contains("stalls"));
  CHECK_THAT(drawn, Contains("device memory, of its peak"));
  const std::string counters = drawn.substr(drawn.find("counters  "));
  CHECK(counters.find("fifth") < counters.find("fourth"));
  CHECK(counters.find("fourth") < counters.find("third"));
  CHECK(counters.find("second") == std::string::npos);
}

}  // namespace
}  // namespace mtmc::client

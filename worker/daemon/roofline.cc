// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/roofline.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace mtmc::worker {
namespace {

// The measured copy bandwidth is itself within a few percent, and a kernel that
// only reads can be faster than a copy by up to a third.
constexpr double kImpossibleRatio = 0.6;

// Below this multiple of the cache, data that the flush missed can matter.
constexpr int64_t kCacheMultiple = 4;

// Under this share of the device's own time, launches and gaps dominate.
constexpr double kBusyRatio = 0.5;

double PlanDeviceSeconds(const v1::Profile& profile) {
  double seconds = 0;
  for (const auto& kernel : profile.kernels()) seconds += kernel.seconds();
  return seconds;
}

}  // namespace

SpeedOfLight SpeedOfLightOf(const v1::Inspection& inspection, const v1::DeviceFacts& device) {
  SpeedOfLight light;
  if (device.memory_bandwidth_bytes_per_second() > 0) {
    light.memory_seconds = static_cast<double>(inspection.minimum_bytes()) /
                           device.memory_bandwidth_bytes_per_second();
  }
  const double rate = std::max(device.fp32_flops_per_second(), device.tf32_flops_per_second());
  if (rate > 0) light.compute_seconds = static_cast<double>(inspection.contraction_flops()) / rate;
  return light;
}

void Explain(const SpeedOfLight& light, double measured_seconds, v1::Profile& profile) {
  if (measured_seconds <= 0 || light.seconds() <= 0) return;
  const double ratio = light.seconds() / measured_seconds;
  const double device_seconds = PlanDeviceSeconds(profile);
  profile.set_speed_of_light_ratio(ratio);
  const bool is_idle = device_seconds > 0 && device_seconds < kBusyRatio * measured_seconds;
  profile.set_limit(is_idle                                        ? "latency"
                    : light.compute_seconds > light.memory_seconds ? "compute"
                                                                   : "memory");
  std::string summary = absl::StrFormat(
      "%.0f %% of the speed of light; the problem is bound by %s (at least %.3g ms)", 100 * ratio,
      light.compute_seconds > light.memory_seconds ? "arithmetic" : "memory",
      1e3 * light.seconds());
  if (is_idle) {
    absl::StrAppendFormat(&summary, "; the device is busy only %.0f %% of the time",
                          100 * device_seconds / measured_seconds);
  } else if (!profile.kernels().empty()) {
    const auto longest =
        std::max_element(profile.kernels().begin(), profile.kernels().end(),
                         [](const auto& a, const auto& b) { return a.seconds() < b.seconds(); });
    absl::StrAppendFormat(&summary, "; %s takes %.0f %% of the time", longest->kernel(),
                          100 * longest->share_ratio());
  }
  profile.set_summary(std::move(summary));
}

bool IsImpossible(const v1::Inspection& inspection, const v1::DeviceFacts& device,
                  double measured_seconds) {
  if (device.memory_bandwidth_bytes_per_second() <= 0) return false;
  if (inspection.minimum_bytes() < kCacheMultiple * device.cache_bytes()) return false;
  return measured_seconds < kImpossibleRatio * SpeedOfLightOf(inspection, device).memory_seconds;
}

}  // namespace mtmc::worker

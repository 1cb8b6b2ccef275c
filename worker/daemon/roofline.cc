// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/roofline.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/profile/metric_table.h"
#include "worker/daemon/bottleneck.h"
#include "worker/daemon/necessary_work.h"

namespace mtmc::worker {
namespace {

// The measured copy bandwidth is itself within a few percent, and a kernel that
// only reads can be faster than a copy by up to a third on a GPU and a half on a
// processor, whose copies read what they overwrite.
constexpr double kBandwidthRoom = 0.6;

// Of the necessary bytes, those that inputs may have left in the cache and those
// that outputs may leave there.
constexpr int64_t kCacheMultiple = 2;

// The rate of TF32, or of FP32 where that is all there is, against the fastest
// that can pass for it: four times as many operations in eight bits, half as many
// operations by a fast algorithm, and the error of the rate.
constexpr double kRateRoom = 0.1;

// Under this share of the device's own time, launches and gaps dominate.
constexpr double kBusyRatio = 0.5;

double RateOf(const v1::DeviceFacts& device) {
  return std::max(device.fp32_flops_per_second(), device.tf32_flops_per_second());
}

double PlanDeviceSeconds(const v1::Profile& profile) {
  double seconds = 0;
  for (const auto& kernel : profile.kernels()) seconds += kernel.seconds();
  return seconds;
}

// Null when nothing was profiled.
const v1::KernelActivity* FindLongest(const v1::Profile& profile) {
  const auto longest =
      std::max_element(profile.kernels().begin(), profile.kernels().end(),
                       [](const auto& a, const auto& b) { return a.seconds() < b.seconds(); });
  return longest == profile.kernels().end() ? nullptr : &*longest;
}

}  // namespace

SpeedOfLight SpeedOfLightOf(const v1::Inspection& inspection, const v1::DeviceFacts& device) {
  SpeedOfLight light;
  if (device.memory_bandwidth_bytes_per_second() > 0) {
    light.memory_seconds = static_cast<double>(inspection.minimum_bytes()) /
                           device.memory_bandwidth_bytes_per_second();
  }
  if (const double rate = RateOf(device); rate > 0) {
    light.compute_seconds = static_cast<double>(inspection.contraction_flops()) / rate;
  }
  return light;
}

void Explain(const SpeedOfLight& light, double measured_seconds, v1::Profile& profile) {
  if (measured_seconds <= 0) return;
  const bool is_arithmetic = light.compute_seconds > light.memory_seconds;
  std::string summary;
  if (light.seconds() > 0) {
    const double ratio = light.seconds() / measured_seconds;
    profile.set_speed_of_light_ratio(ratio);
    profile.set_limit(is_arithmetic ? v1::Profile::LIMIT_COMPUTE : v1::Profile::LIMIT_MEMORY);
    absl::StrAppendFormat(
        &summary, "%.0f %% of the speed of light; the problem is bound by %s (at least %.3g ms)",
        100 * ratio, is_arithmetic ? "arithmetic" : "memory", 1e3 * light.seconds());
  }
  auto add = [&summary](const std::string& part) {
    absl::StrAppend(&summary, summary.empty() ? "" : "; ", part);
  };
  if (const v1::KernelActivity* longest = FindLongest(profile)) {
    std::string part = absl::StrFormat("%s takes %.0f %% of the time", longest->kernel(),
                                       100 * longest->share_ratio());
    const Bottleneck bottleneck =
        FindBottleneck({longest->metrics().begin(), longest->metrics().end()});
    if (bottleneck.limit != v1::Profile::LIMIT_UNSPECIFIED) {
      profile.set_limit(bottleneck.limit);
      absl::StrAppend(&part, ": ", bottleneck.reason);
    }
    add(part);
  }
  const double device_seconds = PlanDeviceSeconds(profile);
  if (device_seconds > 0 && device_seconds < kBusyRatio * measured_seconds) {
    profile.set_limit(v1::Profile::LIMIT_LATENCY);
    add(absl::StrFormat("the device is busy only %.0f %% of the time",
                        100 * device_seconds / measured_seconds));
  }
  profile.set_summary(std::move(summary));
}

std::string WhyImpossible(const v1::Inspection& inspection, const v1::DeviceFacts& device,
                          bool is_cold, double measured_seconds) {
  const NecessaryWork work = FindNecessaryWork(inspection);
  const double bandwidth = device.memory_bandwidth_bytes_per_second();
  const int64_t bytes = work.bytes - kCacheMultiple * device.cache_bytes();
  if (is_cold && bandwidth > 0 && bytes > 0) {
    const double least = kBandwidthRoom * static_cast<double>(bytes) / bandwidth;
    if (measured_seconds < least) {
      return absl::StrFormat(
          "measured %.3g ms, but memory needs at least %.3g ms for the %.3g MB that must be moved",
          1e3 * measured_seconds, 1e3 * least, 1e-6 * static_cast<double>(work.bytes));
    }
  }
  if (const double rate = RateOf(device); rate > 0) {
    const double least = kRateRoom * static_cast<double>(work.flops) / rate;
    if (measured_seconds < least) {
      return absl::StrFormat(
          "measured %.3g ms, but no unit of the device does the %.3g operations in under %.3g ms",
          1e3 * measured_seconds, static_cast<double>(work.flops), 1e3 * least);
    }
  }
  return "";
}

}  // namespace mtmc::worker

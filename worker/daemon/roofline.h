// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mtmc/v1/device.pb.h"
#include "mtmc/v1/evaluation.pb.h"
#include "mtmc/v1/problem.pb.h"

namespace mtmc::worker {

// The least time a problem can take on a device, by the roofline model: bytes
// over bandwidth or FLOPs over rate, whichever is longer.
struct SpeedOfLight {
  double memory_seconds = 0;
  double compute_seconds = 0;

  double seconds() const {
    return memory_seconds > compute_seconds ? memory_seconds : compute_seconds;
  }
};

// Zero where the device's rate is unknown. The compute rate is that of the
// widest unit the precision class allows: TF32 for `tf32` and `half`, and for
// the other classes too where the reference itself uses it in convolutions, so
// that the bound is never above what an honest program can reach.
SpeedOfLight SpeedOfLightOf(const v1::Inspection& inspection, const v1::DeviceFacts& device);

// Fills limit, speed-of-light ratio and summary of a profile from the measured
// time of the whole plan. Where there are counters, they say what limits the
// longest kernel; else the roofline of the problem does.
void Explain(const SpeedOfLight& light, double measured_seconds, v1::Profile& profile);

// Why a measurement cannot be true, in half a sentence; empty when it can. Holds
// the time against the necessary work of the problem alone, with room for the
// error of the measured rates, for what the caches hold, and for products of a
// lower precision: no honest program is refused, and most wrong times are left
// to verification and to the agreement of clocks. `is_cold` says that the cache
// was flushed before each sample.
std::string WhyImpossible(const v1::Inspection& inspection, const v1::DeviceFacts& device,
                          bool is_cold, double measured_seconds);

}  // namespace mtmc::worker

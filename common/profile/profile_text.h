// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/profile/metric_table.h"

namespace mtmc::v1 {
class Profile;
}

namespace mtmc::profile {

// A metric's value with its unit as the name tells it: `82 %`, `1.07 GB`, `4.0`.
std::string FormatMetric(std::string_view name, double value);

// What decides about the next step, on one line without its end: how busy each
// part of the device is, how accesses fall, and the three largest stalls. Empty
// when there is no metric.
std::string CounterLine(const Values& metrics);

// A profile for a language model: the sentence, the counters and up to five
// kernels, longest first. The same profile gives the same text; at most about
// 1 KB. Empty when nothing was profiled.
std::string DescribeProfile(const v1::Profile& profile);

}  // namespace mtmc::profile

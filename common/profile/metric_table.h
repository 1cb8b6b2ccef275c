// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::profile {

// Values by name: of hardware counters under CUPTI's names, or of metrics under
// ours.
using Values = std::map<std::string, double, std::less<>>;

// Under which heading people see a metric.
enum class MetricGroup { kMemory, kCache, kShared, kCompute, kSchedule, kStall };

std::string_view Title(MetricGroup group);

// When a metric's counters are collected: each set costs passes of its own.
enum class CounterSet {
  // Always.
  kHardware,
  // When the tensor pipe was active.
  kTensor,
  // When asked for alone: the driver instruments the code, which costs more.
  kInstrumented,
};

// One hardware counter with its weight in a sum.
struct Term {
  std::string_view counter;
  double weight = 1;
};

// A metric that people, policies and language models see: a weighted sum of
// counters over another one. Its name ends in its unit: `_bytes`, `_flops`,
// `_ratio` (0 to 1), `_seconds`, `_count` or `_per_request`.
struct Metric {
  std::string_view name;
  MetricGroup group;
  CounterSet set;
  std::vector<Term> numerator;
  // Empty stands for 1.
  std::vector<Term> denominator;
  std::string_view meaning;
};

// Every metric, in the order in which it is shown. The only place where a name
// of ours meets a name of CUPTI's.
std::span<const Metric> MetricTable();

// Null when there is none of that name.
const Metric* FindMetric(std::string_view name);

// Counters that a set's metrics are made of, each once.
std::vector<std::string> CountersOf(CounterSet set);

// Metrics whose counters are all in `counters`; a ratio of nothing is left out.
Values Derive(const Values& counters);

// The counters of several kernels as those of one: sums, and means weighted by
// duration of what CUPTI gives in percent.
Values Merge(std::span<const Values> kernels);

}  // namespace mtmc::profile

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace mtmc::metrics {

// Label names and values of one time series, such as {{"state", "RUNNING"}}.
// Values come from small fixed sets, never from ids: each combination stays in
// memory for the life of the process.
using Labels = std::map<std::string, std::string>;

// A count that only grows. A handle: cheap to copy, thread-safe, lock-free, and
// valid as long as its Registry.
class Counter {
 public:
  void Increment(double amount = 1) const;
  double value() const;

 private:
  friend class Registry;

  explicit Counter(void* counter) : counter_(counter) {}

  void* counter_;
};

// A value that goes up and down. A handle as Counter is.
class Gauge {
 public:
  void Set(double value) const;
  void Add(double amount) const;
  double value() const;

 private:
  friend class Registry;

  explicit Gauge(void* gauge) : gauge_(gauge) {}

  void* gauge_;
};

// A distribution in buckets. A handle as Counter is.
class Histogram {
 public:
  void Observe(double value) const;

 private:
  friend class Registry;

  explicit Histogram(void* histogram) : histogram_(histogram) {}

  void* histogram_;
};

// Seconds from 1 ms to 10 min in a 1-2.5-5 ladder: covers an RPC and a job.
std::vector<double> SecondsBuckets();

// The values of one label that come from outside, such as names that clients give:
// the first `max_values` become values of the label, all others are `other`, so
// that nobody fills the memory of a daemon or of Prometheus. Thread-safe.
class BoundedLabel {
 public:
  explicit BoundedLabel(size_t max_values) : max_values_(max_values) {}

  // `value`, cut to 80 bytes, or `other`. An empty value is `none`.
  std::string Of(const std::string& value) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const size_t max_values_;
  absl::Mutex mu_;
  std::set<std::string> values_ ABSL_GUARDED_BY(mu_);
};

// The metrics of a process, in Prometheus' form. Names begin with `mtmc_`, carry
// the unit (`_seconds`, `_bytes`), and counters end in `_total`. Asking again for
// the same name and labels gives the same series. A name that is not valid, or
// that has another type, is a programming error.
//
// A service: thread-safe, immovable.
class Registry {
 public:
  // With `mtmc_build_info{version, program}` = 1 and the standard process_*
  // metrics (start time, CPU seconds, resident bytes, descriptors open and at most).
  explicit Registry(const std::string& program);
  ~Registry();

  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Counter MakeCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge MakeGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  Histogram MakeHistogram(const std::string& name, const std::string& help,
                          const std::vector<double>& buckets, const Labels& labels = {});

  // Forgets one series of a gauge that MakeGauge made; its handles are invalid then.
  void RemoveGauge(const std::string& name, const std::string& help, const Labels& labels);

  // All series as Prometheus reads them (text format 0.0.4).
  std::string Render() const;

 private:
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace mtmc::metrics

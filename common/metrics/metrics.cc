// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/metrics.h"

#include <prometheus/check_names.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "common/base/check.h"
#include "common/config/version.h"

namespace mtmc::metrics {
namespace {

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double ResidentBytes() {
  // Second number of statm: resident pages.
  std::ifstream statm("/proc/self/statm");
  double total = 0;
  double resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double OpenDescriptors() {
  std::error_code ignored;
  const std::filesystem::directory_iterator entries("/proc/self/fd", ignored);
  return static_cast<double>(std::distance(begin(entries), end(entries)));
}

double MaxDescriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<double>(limit.rlim_cur);
}

// The library throws std::invalid_argument for a bad name; that is ours to fix.
template <typename Builder>
auto& MakeFamily(Builder builder, prometheus::Registry& registry, const std::string& name,
                 const std::string& help) {
  MTMC_CHECK(prometheus::CheckMetricName(name));
  return builder.Name(name).Help(help).Register(registry);
}

}  // namespace

void Counter::Increment(double amount) const {
  static_cast<prometheus::Counter*>(counter_)->Increment(amount);
}

double Counter::value() const { return static_cast<prometheus::Counter*>(counter_)->Value(); }

void Gauge::Set(double value) const { static_cast<prometheus::Gauge*>(gauge_)->Set(value); }

void Gauge::Add(double amount) const { static_cast<prometheus::Gauge*>(gauge_)->Increment(amount); }

double Gauge::value() const { return static_cast<prometheus::Gauge*>(gauge_)->Value(); }

void Histogram::Observe(double value) const {
  static_cast<prometheus::Histogram*>(histogram_)->Observe(value);
}

std::vector<double> SecondsBuckets() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
          1,     2.5,    5,     10,   25,    60,   120, 300,  600};
}

// Names of models, products and files are shorter, as a rule.
constexpr size_t kMaxLabelBytes = 80;

std::string BoundedLabel::Of(const std::string& value) {
  // Not in the middle of a character: Prometheus refuses what is no UTF-8.
  size_t size = std::min(value.size(), kMaxLabelBytes);
  while (size < value.size() && size > 0 && (static_cast<unsigned char>(value[size]) >> 6) == 2) {
    --size;
  }
  const std::string label = value.empty() ? "none" : value.substr(0, size);
  absl::MutexLock lock(&mu_);
  if (values_.size() < max_values_) values_.insert(label);
  return values_.contains(label) ? label : "other";
}

// The series that were made, by name and labels. The library looks through all families for
// one that is there, and makes another metric to drop it; an evaluation asks for a dozen.
template <typename Metric>
class KnownSeries {
 public:
  template <typename Make>
  Metric* Find(const std::string& name, const Labels& labels, const Make& make)
      ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    Metric*& series = series_[name][labels];
    if (series == nullptr) series = &make();
    return series;
  }

  void Forget(const std::string& name, const Labels& labels) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    series_[name].erase(labels);
  }

 private:
  absl::Mutex mu_;
  std::map<std::string, std::map<Labels, Metric*>> series_ ABSL_GUARDED_BY(mu_);
};

struct Registry::State {
  prometheus::Registry registry;
  KnownSeries<prometheus::Counter> counters;
  KnownSeries<prometheus::Gauge> gauges;
  KnownSeries<prometheus::Histogram> histograms;
  // Read from the system at each Render().
  prometheus::Counter* cpu_seconds = nullptr;
  prometheus::Gauge* resident_bytes = nullptr;
  prometheus::Gauge* open_descriptors = nullptr;
};

Registry::Registry(const std::string& program) : state_(std::make_unique<State>()) {
  MakeGauge("mtmc_build_info", "Constant 1; the labels say what runs.",
            {{"program", program}, {"version", std::string(config::Version())}})
      .Set(1);
  MakeGauge("process_start_time_seconds", "Start time of the process since the Unix epoch.")
      .Set(static_cast<double>(std::time(nullptr)));
  const auto gauge = [this](const std::string& name, const std::string& help) {
    return static_cast<prometheus::Gauge*>(MakeGauge(name, help).gauge_);
  };
  gauge("process_max_fds", "File descriptors that may be open at most.")->Set(MaxDescriptors());
  state_->cpu_seconds = static_cast<prometheus::Counter*>(
      MakeCounter("process_cpu_seconds_total",
                  "Processor time in user and system mode, in seconds.")
          .counter_);
  state_->resident_bytes = gauge("process_resident_memory_bytes", "Resident memory in bytes.");
  state_->open_descriptors = gauge("process_open_fds", "Open file descriptors.");
}

Registry::~Registry() = default;

Counter Registry::MakeCounter(const std::string& name, const std::string& help,
                              const Labels& labels) {
  const auto make = [&]() -> prometheus::Counter& {
    return MakeFamily(prometheus::BuildCounter(), state_->registry, name, help).Add(labels);
  };
  return Counter(state_->counters.Find(name, labels, make));
}

Gauge Registry::MakeGauge(const std::string& name, const std::string& help, const Labels& labels) {
  const auto make = [&]() -> prometheus::Gauge& {
    return MakeFamily(prometheus::BuildGauge(), state_->registry, name, help).Add(labels);
  };
  return Gauge(state_->gauges.Find(name, labels, make));
}

Histogram Registry::MakeHistogram(const std::string& name, const std::string& help,
                                  const std::vector<double>& buckets, const Labels& labels) {
  const auto make = [&]() -> prometheus::Histogram& {
    return MakeFamily(prometheus::BuildHistogram(), state_->registry, name, help)
        .Add(labels, buckets);
  };
  return Histogram(state_->histograms.Find(name, labels, make));
}

void Registry::RemoveGauge(const std::string& name, const std::string& help, const Labels& labels) {
  state_->gauges.Forget(name, labels);
  auto& family = MakeFamily(prometheus::BuildGauge(), state_->registry, name, help);
  family.Remove(&family.Add(labels));
}

std::string Registry::Render() const {
  // Two scrapes at once: an increment of nothing or less is refused by the counter.
  state_->cpu_seconds->Increment(std::max(CpuSeconds() - state_->cpu_seconds->Value(), 0.0));
  state_->resident_bytes->Set(ResidentBytes());
  state_->open_descriptors->Set(OpenDescriptors());
  return prometheus::TextSerializer().Serialize(state_->registry.Collect());
}

}  // namespace mtmc::metrics

// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/evaluation_summary.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "worker/daemon/stage_label.h"

namespace mtmc::worker {
namespace {

using Json = nlohmann::ordered_json;

// The smallest value that `share` of the values do not exceed.
double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<size_t>(rank, 1) - 1];
}

// A build that costs its evaluation less than this came from the cache.
constexpr absl::Duration kHiddenBuild = absl::Milliseconds(10);

bool IsBuildHidden(const CallLog::Totals& calls) {
  absl::Duration visible;
  for (const char* name : {"builder.build", kPrefetchAwait}) {
    const auto found = calls.find(name);
    if (found != calls.end()) visible += found->second.time;
  }
  return visible < kHiddenBuild;
}

// To a microsecond: more digits are noise.
double Rounded(double milliseconds) { return std::round(milliseconds * 1e3) / 1e3; }

Json Percentiles(const std::vector<double>& seconds) {
  if (seconds.empty()) return Json();
  return {{"p50", Rounded(Percentile(seconds, 0.5) * 1e3)},
          {"p95", Rounded(Percentile(seconds, 0.95) * 1e3)}};
}

}  // namespace

void EvaluationSummary::Add(const v1::LeaseResult& result, absl::Duration wall,
                            const CallLog::Totals& calls) {
  if (result.has_worker_failure()) {
    ++num_worker_failures_;
    return;
  }
  ++num_evaluated_;
  ++outcomes_[OutcomeLabel(result)];
  const v1::Evaluation& evaluation = result.evaluation();
  device_seconds_ += evaluation.kernel_seconds();
  if (IsBuildHidden(calls)) ++num_hidden_builds_;
  if (!evaluation.has_measurement()) return;
  const double seconds = absl::ToDoubleSeconds(wall);
  wall_seconds_.push_back(seconds);
  overhead_seconds_.push_back(seconds - evaluation.kernel_seconds());
  for (const v1::StageSpan& span : evaluation.spans()) {
    stage_seconds_[StageLabel(span.stage())].push_back(SecondsOf(span));
  }
  for (const auto& [name, total] : calls) {
    call_seconds_[name].push_back(absl::ToDoubleSeconds(total.time));
  }
}

std::string EvaluationSummary::ToJson(absl::Duration wall) const {
  const double seconds = absl::ToDoubleSeconds(wall);
  Json json = {{"evaluations", num_evaluated_},
               {"worker_failures", num_worker_failures_},
               {"outcomes", outcomes_},
               {"builds_hidden", num_hidden_builds_},
               {"wall_seconds", Rounded(seconds)},
               {"device_seconds", Rounded(device_seconds_)}};
  if (seconds > 0) {
    json["device_busy_ratio"] = Rounded(device_seconds_ / seconds);
    json["evaluations_per_hour"] = Rounded(num_evaluated_ * 3600 / seconds);
  }
  json["wall_ms"] = Percentiles(wall_seconds_);
  json["overhead_ms"] = Percentiles(overhead_seconds_);
  for (const auto& [stage, values] : stage_seconds_) json["stage_ms"][stage] = Percentiles(values);
  for (const auto& [call, values] : call_seconds_) json["calls_ms"][call] = Percentiles(values);
  return json.dump(2);
}

}  // namespace mtmc::worker

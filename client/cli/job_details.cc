// SPDX-License-Identifier: Apache-2.0
#include "client/cli/job_details.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/evaluation_view.h"
#include "client/cli/job_view.h"
#include "client/cli/output.h"
#include "common/fleet/worker_demand.h"

namespace mtmc::client {
namespace {

std::string ClockText(double hertz) {
  return hertz > 0 ? absl::StrFormat("%.2f GHz", hertz * 1e-9) : "-";
}

}  // namespace

std::string WhyJobWaits(const v1::Job& job, const std::vector<v1::Worker>& workers) {
  if (job.state() != v1::Job::STATE_PENDING && job.state() != v1::Job::STATE_RUNNING) return "";
  const bool is_served = std::any_of(workers.begin(), workers.end(), [&](const auto& worker) {
    return worker.activity() == job.name() ||
           absl::StartsWith(worker.activity(), absl::StrCat(job.name(), "/"));
  });
  return is_served ? "" : fleet::WhyNoneServes(fleet::DemandOf(job), workers);
}

void PrintBaselines(const v1::Inspection& inspection, std::ostream& out) {
  if (inspection.baselines().empty()) return;
  Table table({"baseline", ">median", ">noise", ">samples", ">clock"});
  for (const v1::BaselineTime& baseline : inspection.baselines()) {
    table.AddRow({BaselineName(baseline.baseline()), FormatSeconds(baseline.median_seconds()),
                  absl::StrFormat("%.2f %%", 100 * baseline.noise_ratio()),
                  absl::StrCat(baseline.samples()), ClockText(baseline.clock_hertz())});
  }
  out << "\n";
  table.Print(out);
}

}  // namespace mtmc::client

// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/project_shares.h"

#include <algorithm>

namespace mtmc::coordinator {
namespace {

// Also work that takes no time moves its project's clock on.
constexpr absl::Duration kLeastCharge = absl::Milliseconds(1);

// Weight of the newest time in the average of all.
constexpr double kNewest = 0.05;

}  // namespace

std::string ProjectShares::ProjectOf(const std::string& job) {
  const size_t end = job.rfind("/jobs/");
  return end == std::string::npos ? "" : job.substr(0, end);
}

absl::Duration ProjectShares::ClockOf(const std::string& project) const {
  const auto found = clocks_.find(project);
  return found == clocks_.end() ? now_ : found->second;
}

void ProjectShares::NoteWaiting(const std::string& project) {
  absl::Duration& clock = clocks_[project];
  clock = std::max(clock, now_);
  if (clocks_.size() > prune_above_) Prune();
}

absl::Duration ProjectShares::Charge(const std::string& project) {
  const absl::Duration charged = std::max(average_, kLeastCharge);
  const absl::Duration before = ClockOf(project);
  now_ = std::max(now_, before);
  clocks_[project] = before + charged;
  return charged;
}

void ProjectShares::Settle(const std::string& project, absl::Duration charged,
                           absl::Duration used) {
  average_ = (1 - kNewest) * average_ + kNewest * used;
  clocks_[project] = ClockOf(project) + std::max(used, kLeastCharge) - charged;
}

void ProjectShares::Prune() {
  std::erase_if(clocks_, [this](const auto& entry) { return entry.second <= now_; });
  prune_above_ = std::max<size_t>(1000, 2 * clocks_.size());
}

}  // namespace mtmc::coordinator

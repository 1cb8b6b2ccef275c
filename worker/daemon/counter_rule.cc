// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/counter_rule.h"

namespace mtmc::worker {
namespace {

// A worker that has seen more forgets all: a new best of each costs one more
// profile.
constexpr size_t kMaxProblems = 10000;

}  // namespace

bool CounterRule::Wants(const std::string& problem, double seconds) {
  absl::MutexLock lock(&mu_);
  if (best_.size() >= kMaxProblems) best_.clear();
  const auto [entry, is_first] = best_.try_emplace(problem, seconds);
  if (is_first) return true;
  if (seconds >= entry->second) return false;
  entry->second = seconds;
  return true;
}

}  // namespace mtmc::worker

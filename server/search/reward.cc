// SPDX-License-Identifier: Apache-2.0
#include "server/search/reward.h"

#include <algorithm>
#include <cmath>

#include "server/search/lineage.h"

namespace mtmc::search {
namespace {

constexpr double kNotBuilt = -1.0;
constexpr double kNotRun = -0.6;
constexpr double kWrong = -0.3;
constexpr double kSlower = 0.1;
constexpr double kSame = 0.2;
constexpr double kFaster = 0.3;
// Four times faster in one step; more is luck of the start and would drown
// every other step of the batch.
constexpr double kMaxGain = 2.0;
constexpr double kDecayPerStep = 0.05;
// A long rollout keeps a positive factor, so that the sign of a reward stays.
constexpr double kMinDecay = 0.1;

bool IsBuilt(const v1::Candidate& child) {
  if (child.state() != v1::Candidate::STATE_EVALUATED) return false;
  const auto& failure = child.evaluation().failure();
  return failure.kind() != v1::Failure::KIND_PARSE && failure.kind() != v1::Failure::KIND_CHECK &&
         failure.kind() != v1::Failure::KIND_COMPILE && failure.stage() != v1::STAGE_BUILD;
}

double Gain(const v1::Candidate& parent, const v1::Candidate& child) {
  const double parent_seconds = parent.evaluation().measurement().median_seconds();
  const double child_seconds = child.evaluation().measurement().median_seconds();
  if (!IsCorrect(parent) || parent_seconds <= 0 || child_seconds <= 0) return 0;
  return std::clamp(std::log2(parent_seconds / child_seconds), 0.0, kMaxGain);
}

double Milestone(const v1::Candidate& parent, const v1::Candidate& child) {
  if (!IsBuilt(child)) return kNotBuilt;
  switch (Compare(parent, child)) {
    case Outcome::kFailed:
      return kNotRun;
    case Outcome::kWrong:
      return kWrong;
    case Outcome::kSlower:
      return kSlower;
    case Outcome::kSame:
      return kSame;
    case Outcome::kFaster:
      return kFaster + Gain(parent, child);
  }
  return kNotRun;
}

}  // namespace

double Reward(const v1::Candidate& parent, const v1::Candidate& child, int step) {
  return Milestone(parent, child) * std::max(kMinDecay, 1 - kDecayPerStep * step);
}

}  // namespace mtmc::search

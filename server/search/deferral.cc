// SPDX-License-Identifier: Apache-2.0
#include "server/search/deferral.h"

#include <algorithm>

#include "google/protobuf/util/time_util.h"
#include "server/search/known_step.h"

namespace mtmc::search {
namespace {

using google::protobuf::util::TimeUtil;

// How many times a confirmation takes as long as a candidate that is not confirmed, and as the
// intake of the problem; the largest of some twenty drawn problems on an H200.
constexpr int kCandidates = 10;
constexpr int kIntakes = 5;

// From its creation to its end: what it waited for may have to be waited for again.
absl::Duration TimeOf(const v1::Candidate& candidate) {
  if (!candidate.has_end_time()) return absl::ZeroDuration();
  return absl::Microseconds(
      TimeUtil::DurationToMicroseconds(candidate.end_time() - candidate.create_time()));
}

}  // namespace

bool IsDeferrable(const v1::Job& job, const v1::Candidate& candidate) {
  return candidate.coder() == kBuiltinCoder && !job.search().has_evaluate();
}

absl::Duration ConfirmationTime(const Lineage& lineage, absl::Duration used) {
  absl::Duration longest = absl::ZeroDuration();
  for (const v1::Candidate& candidate : lineage.candidates) {
    longest = std::max(longest, TimeOf(candidate));
  }
  const bool is_first = lineage.trials() == 0 && longest == absl::ZeroDuration();
  return is_first ? kIntakes * used : kCandidates * longest;
}

bool HasTimeToDefer(const Lineage& lineage, absl::Duration used, absl::Duration left) {
  return ConfirmationTime(lineage, used) <= left / 2;
}

}  // namespace mtmc::search

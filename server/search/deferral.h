// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"
#include "server/search/lineage.h"

namespace mtmc::search {

// What is asked of winners alone takes ten times as long as all else, and most winners are beaten
// soon. So it is left for the end: then the best candidate is confirmed, and if it fails the next
// best one, until one is.

// Whether a candidate's confirmation may be left for later. Not of a program that the job did not
// make by itself: what a language model goes on from had better be sound, and whoever asks about
// one program wants to know all.
bool IsDeferrable(const v1::Job& job, const v1::Candidate& candidate);

// How long a confirmation may take, by what candidates took so far, and before the first one by
// the intake: `used` is the wall time of the search.
absl::Duration ConfirmationTime(const Lineage& lineage, absl::Duration used);

// Whether there is time to go on without a confirmed candidate: a confirmation that began when
// half of the wall time that is `left` is over would still come to its end.
bool HasTimeToDefer(const Lineage& lineage, absl::Duration used, absl::Duration left);

}  // namespace mtmc::search

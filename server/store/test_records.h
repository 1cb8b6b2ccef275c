// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"

namespace mtmc::store {

// Records that the tests of stores write.

inline constexpr char kJob[] = "projects/p/jobs/a";

inline v1::Job MakeJob(const std::string& name) {
  v1::Job job;
  job.set_name(name);
  job.set_state(v1::Job::STATE_PENDING);
  return job;
}

inline v1::JobEvent Notice(const std::string& text) {
  v1::JobEvent event;
  event.set_notice(text);
  return event;
}

inline v1::JobEvent Told(const v1::Candidate& candidate) {
  v1::JobEvent event;
  *event.mutable_candidate() = candidate;
  return event;
}

}  // namespace mtmc::store

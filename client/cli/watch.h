// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/job_view.h"
#include "client/cli/session.h"

namespace mtmc::client {

// Follows a job with `view` until it ends. Survives restarts of the coordinator:
// a broken stream is taken up again at the cursor. Restarts dead daemons of the
// session's own stack meanwhile.
//
// OK when the job has ended; CANCELLED on Ctrl-C, which only detaches;
// DEADLINE_EXCEEDED after `timeout`; other errors as WatchJob has them.
absl::Status FollowJob(Session& session, const std::string& job, JobView& view,
                       absl::Duration timeout);

}  // namespace mtmc::client

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::client {

// Why none of `workers` may serve a job that has not ended, as
// fleet::WhyNoneServes says it. Empty for a job that has ended, that one of them
// serves at this moment, or that only waits for its turn.
std::string WhyJobWaits(const v1::Job& job, const std::vector<v1::Worker>& workers);

// Draws what each baseline took and how sure that is. Nothing before they were
// timed.
void PrintBaselines(const v1::Inspection& inspection, std::ostream& out);

}  // namespace mtmc::client

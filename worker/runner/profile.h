// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "mtmc/v1/evaluation.pb.h"
#include "worker/device/plan_runner.h"

namespace mtmc::worker {

// Activity of each step as the wire shows it. `activities` are parallel to the
// plan's steps. What needs the problem (roofline, speed of light) is left unset.
v1::Profile MakeProfile(const PlanRunner& plan, const std::vector<StepActivity>& activities,
                        const std::string& source);

}  // namespace mtmc::worker

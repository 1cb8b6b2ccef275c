// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mtmc/v1/evaluation.pb.h"
#include "worker/device/plan_runner.h"

namespace mtmc::worker {

// Activity and counters of each step as the wire shows them. What needs the
// problem (roofline, speed of light) is left unset.
v1::Profile MakeProfile(const PlanRunner& plan, const PlanProfile& profile,
                        const std::string& source);

}  // namespace mtmc::worker

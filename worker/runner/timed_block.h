// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/device/device.h"
#include "worker/device/input_store.h"
#include "worker/device/plan_runner.h"

namespace mtmc::worker {

// Takes the samples of one Time request: warm-ups on the present inputs, every other
// execution on a set of kept inputs drawn by `random`, and the last one on a set that was never
// executed, if the request names one. The outputs' digest is taken after some of them. Ends with a
// check of redzones and inputs. The device's yardstick is timed in between where that is
// asked for. Numbers that the store does not know are passed
// over. REQUIRES: plan.is_executed(), on `device`.
Outcome<pipe::v1::RunnerResponse::Timed> TimeBlock(Device& device, PlanRunner& plan,
                                                   InputStore& store,
                                                   const pipe::v1::RunnerRequest::Time& request,
                                                   std::mt19937_64& random);

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mtmc/v1/device.pb.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::load {

// The device of every simulated worker: a CPU with OpenCL.
v1::DeviceFacts SimulatedDevice();

// What a simulated worker finds: for an inspection a traced graph of four operations,
// for an evaluation a measurement, of the size that a real one has. The program's digest
// decides whether it is right (seven of eight are) and how fast; so does nothing else.
v1::LeaseResult Answer(const v1::Lease& lease);

}  // namespace mtmc::load

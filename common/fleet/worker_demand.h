// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mtmc/v1/device.pb.h"
#include "mtmc/v1/evaluation.pb.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::fleet {

// What a job demands of the worker that serves it. A value.
struct WorkerDemand {
  v1::WorkerSelector selector;
  // Unspecified takes any language that candidates are written in.
  v1::Dialect dialect = v1::DIALECT_UNSPECIFIED;
  v1::Isolation min_isolation = v1::ISOLATION_UNSPECIFIED;
  // The device that the job began on: only one of the same class (DeviceClass) may go on
  // with it. Absent before it began.
  std::optional<v1::DeviceFacts> device;
};

WorkerDemand DemandOf(const v1::Job& job);

bool HasDialect(const v1::DeviceFacts& device, v1::Dialect dialect);

// Whether the worker has all that is demanded, whatever state it is in. The only
// place that says so: who grants work asks here, and so does who explains a wait.
bool Meets(const v1::Worker& worker, const WorkerDemand& demand);

// Why none of `workers` takes such work, in one sentence for people: what is
// demanded, and what those have that meet the rest of it. Empty when one takes it,
// be it busy now.
std::string WhyNoneServes(const WorkerDemand& demand, const std::vector<v1::Worker>& workers);

}  // namespace mtmc::fleet

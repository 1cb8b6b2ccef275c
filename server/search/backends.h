// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/fleet/worker_demand.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/micro_coding.pb.h"
#include "mtmc/v1/policy.pb.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::search {

// Receives a result exactly once, on any thread, possibly before the call that
// took it returns.
template <class T>
using Done = std::function<void(absl::StatusOr<T>)>;

// A request: a call that was given up may still go out with it. Whoever lets go of it last deletes
// it, on any thread.
template <class T>
using Asked = std::shared_ptr<const T>;

// The micro step, as the gateway serves it (micro_coding.proto has the codes).
// Never blocks. UNAVAILABLE: the gateway is down, ask again later.
class MicroCoder {
 public:
  virtual ~MicroCoder() = default;

  virtual void CreateProgram(Asked<v1::CreateProgramRequest> request,
                             Done<v1::CreateProgramResponse> done) = 0;
  virtual void ListActions(Asked<v1::ListActionsRequest> request,
                           Done<v1::ListActionsResponse> done) = 0;
  virtual void ApplyAction(Asked<v1::ApplyActionRequest> request,
                           Done<v1::ApplyActionResponse> done) = 0;
};

// The macro step, as the policy service serves it. Never blocks, and answers
// within a deadline of its own.
class MacroPolicy {
 public:
  virtual ~MacroPolicy() = default;

  virtual void ChooseAction(Asked<v1::ChooseActionRequest> request,
                            Done<v1::ChooseActionResponse> done) = 0;
};

// A device that can serve a job, and the language to write for it.
struct DeviceChoice {
  v1::DeviceFacts device;
  v1::Dialect dialect = v1::DIALECT_UNSPECIFIED;
};

// One piece of work for a worker.
struct Work {
  // A fingerprint or an inspection key. Work with equal keys is done once.
  std::string key;
  // `id` and `attempt` of the lease are the evaluator's to set.
  v1::Lease lease;
  // Who may do it for this job.
  fleet::WorkerDemand demand;
  // Called on the loop when a worker takes it, each time it is granted.
  std::function<void()> granted;
  // Called on the loop with the reason when no worker may do it for some time, and
  // again when the reason is another. May be empty.
  std::function<void(const std::string& why)> stuck;
};

// The fleet as a search sees it. Called on the event loop only. A result has
// been recorded in the store before `done` is called.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // A device of a live worker that may serve the job, an idle one first. For a
  // job without a dialect a CUDA worker is preferred.
  virtual std::optional<DeviceChoice> FindDevice(const v1::Job& job) = 0;

  // Why FindDevice has none, as fleet::WhyNoneServes says it; empty if it has one.
  virtual std::string WhyNoDevice(const v1::Job& job) = 0;

  // Calls `changed` once, within a second after the fleet has become another than it was
  // at this call: from then on the two above may say something else.
  virtual void AwaitFleetChange(std::function<void()> changed) = 0;

  // Does the work as soon as a worker is free. `done` gets an evaluation, an
  // inspection or a problem failure, never a worker failure: lost workers are
  // replaced, and too many losses become a result.
  virtual void Submit(Work work, Done<v1::LeaseResult> done) = 0;

  // Forgets what `job` submitted under `key`; its `done` is not called any
  // more. The worker is told to stop unless another job waits for the same. What a worker that
  // was lost with it reports before the job has ended is recorded still.
  virtual void Abandon(const std::string& key, const std::string& job) = 0;

  // Whether a worker works on it; one that only prepares it has not begun.
  virtual bool HasBegun(const std::string& key) const = 0;
};

}  // namespace mtmc::search

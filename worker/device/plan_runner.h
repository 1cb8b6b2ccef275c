// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/program/program.h"
#include "worker/device/device.h"
#include "worker/device/kept_tensor.h"
#include "worker/device/library.h"
#include "worker/device/plan_steps.h"
#include "worker/device/plan_tensors.h"

namespace mtmc::worker {

// What the device did in each step of a plan, in plan order.
struct PlanProfile {
  std::vector<StepActivity> activities;
  // Empty unless asked for.
  StepCounters counters;
};

// A loaded program: its plan, its tensors and its kernels on one device.
//
//   auto runner = PlanRunner::Create(device, library, {.program = ..., .binary = ...});
//   runner->Execute(inputs);         // fresh addresses, checked
//   runner->Time(/*is_cold=*/true);  // on the same inputs
//   runner->CheckMemory();           // redzones and inputs, after timing
//   runner->Outputs();
//
// Invariants:
// 1. Every input lies at a new address after each Execute.
// 2. What is timed is what was executed: the same graph when the plan captures.
// 3. Every execution, for whatever purpose, begins on a device in the same state: outputs,
//    scratch and redzones are random words that no execution saw before, the chip is
//    scrubbed, the cache is flushed (unless a hot one was asked for).
// Thread-compatible. Blocks as long as the device code runs.
class PlanRunner {
 public:
  struct Options {
    kernel::Program program;
    kernel::Bindings bindings;
    std::string binary;
    // Operators a `call` may name, without overload.
    std::vector<std::string> allowed_calls;
  };

  using Output = PlanOutput;

  // Borrows `device` and `library`, which must outlive it; `library` may be null.
  static Outcome<std::unique_ptr<PlanRunner>> Create(Device& device, Library* library,
                                                     Options options);
  ~PlanRunner();

  // Runs the plan once on new inputs, cold, and then checks the memory as CheckMemory does.
  // The random words are those of `seed`, for tests; 0 draws it. With `under_load` other
  // work runs meanwhile, and launches are delayed.
  MaybeFailure Execute(const InputSources& inputs, uint64_t seed = 0, bool under_load = false);

  // One timed run of the plan, on the present inputs or on `inputs`, which are kept: copied to
  // where the present ones lie, or where they are kept if the plan is long. A hot run follows
  // an untimed one on the same inputs. REQUIRES: is_executed(), as for all below.
  Outcome<TimedSample> Time(bool is_cold, const InputSources* inputs = nullptr);

  // Lays the tensors of a short plan at other addresses, of some: several calls and Times
  // in between average over where data lies. Outputs are lost. Does nothing for
  // a plan whose time does not depend on it.
  MaybeFailure Shuffle();

  // kOutOfBounds when a redzone was written, kInputChanged when an input was, in any execution
  // since the last call.
  MaybeFailure CheckMemory();

  // Outputs in buffers of the device's own.
  Outcome<std::vector<Output>> Outputs();

  // Whether those stay as they are until the Execute after the next one.
  bool outputs_stay() const { return tensors_.OutputsStay(); }

  // 64 bits over all outputs that differ when the bytes do; not cryptographic.
  Outcome<uint64_t> Digest();

  // What each step did, in plan order. A plan that captures runs without its
  // graph here and needs a new Execute afterwards.
  Outcome<PlanProfile> Profile(CounterScope scope);

  const kernel::Program& program() const { return options_.program; }

  // What an execution enqueues one after the other: its steps, or one graph.
  int CountLaunches() const { return graph_ ? 1 : static_cast<int>(steps_.size()); }

  // Of a `launch` step; nothing for a `call`.
  const LaunchCommand* FindLaunch(size_t step) const;

  // Whether the last Execute ran to its end, whatever it did to the memory.
  bool is_executed() const { return is_executed_; }

  // Device time of the last Execute; 0 when it ran under load.
  double executed_seconds() const { return seconds_; }

 private:
  PlanRunner(Device& device, Library* library, Options options);

  MaybeFailure Prepare();
  MaybeFailure CheckCall(const kernel::LibraryCall& call) const;
  MaybeFailure CapturePlan();
  MaybeFailure RunAll();
  MaybeFailure RunStep(size_t index);
  MaybeFailure RunCall(const kernel::LibraryCall& call);
  // What an execution enqueues one after the other: its steps, or one graph.
  std::vector<Body> Launches();
  MaybeFailure EnqueueAll();
  // Brings the device into the state in which any execution begins, but for the cache.
  MaybeFailure Condition(uint64_t seed);

  struct Run {
    uint64_t seed = 0;
    bool is_cold = true;
    bool under_load = false;
    // Takes as long as many short plans: an execution that is not timed goes without where no
    // program can notice.
    bool is_flushed = true;
  };

  // The one way in which the plan is executed. No time where it is under load.
  Outcome<TimedSample> RunOnce(const Run& run);

  Device& device_;
  Library* const library_;
  const Options options_;
  std::unique_ptr<Module> module_;
  PlanTensors tensors_;
  std::vector<PlanStep> steps_;
  // Null unless the plan captures and was executed. Destroyed before the tensors
  // it refers to.
  std::unique_ptr<Graph> graph_;
  bool has_calls_ = false;
  bool is_executed_ = false;
  double seconds_ = 0;
};

}  // namespace mtmc::worker

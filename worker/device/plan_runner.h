// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernel/program/program.h"
#include "worker/device/device.h"
#include "worker/device/library.h"

namespace mtmc::kernel {
struct KernelScan;
}

namespace mtmc::worker {

// Where an input's bytes come from: this process's memory, or another's device
// memory.
using InputSource = std::variant<std::span<const std::byte>, PeerMemory>;

// A loaded program: its plan, its tensors and its kernels on one device.
//
//   auto runner = PlanRunner::Create(device, library, {.program = ..., .binary = ...});
//   runner->Execute(inputs, 0xA5);   // fresh addresses, poisoned, checked
//   runner->Time(/*is_cold=*/true);  // on the same inputs
//   runner->CheckMemory();           // redzones and inputs, after timing
//   runner->Outputs();
//
// Invariants:
// 1. Every input lies at a new address after each Execute.
// 2. What is timed is what was executed: the same graph when the plan captures.
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

  // A tensor's bytes after an execution. Valid until the next call that runs.
  struct Output {
    const kernel::Tensor* tensor = nullptr;
    const Buffer* buffer = nullptr;
  };

  // Borrows `device` and `library`, which must outlive it; `library` may be null.
  static Outcome<std::unique_ptr<PlanRunner>> Create(Device& device, Library* library,
                                                     Options options);
  ~PlanRunner();

  // Runs the plan once on new inputs; outputs, scratch and redzones hold `poison`
  // before. Then checks the memory as CheckMemory does.
  MaybeFailure Execute(const std::map<std::string, InputSource, std::less<>>& inputs,
                       uint8_t poison);

  // One timed run of the plan. REQUIRES: is_executed(), as for all below.
  Outcome<TimedSample> Time(bool is_cold);

  // kOutOfBounds when a redzone was written, kInputChanged when an input was.
  MaybeFailure CheckMemory();

  // Outputs in buffers of the device's own.
  Outcome<std::vector<Output>> Outputs();

  // What each step did, in plan order. A plan that captures runs without its
  // graph here and needs a new Execute afterwards.
  Outcome<std::vector<StepActivity>> Profile();

  const kernel::Program& program() const { return options_.program; }

  // Of a `launch` step; nothing for a `call`.
  const LaunchCommand* FindLaunch(size_t step) const;

  // Whether the last Execute ran to its end, whatever it did to the memory.
  bool is_executed() const { return is_executed_; }

 private:
  struct Slot;
  struct PreparedStep;

  PlanRunner(Device& device, Library* library, Options options);

  MaybeFailure Prepare();
  MaybeFailure PrepareLaunch(const kernel::Launch& launch, const kernel::KernelScan& scan,
                             PreparedStep& prepared);
  void MarkOwned();
  MaybeFailure PlaceInputs(const std::map<std::string, InputSource, std::less<>>& inputs,
                           uint8_t poison);
  MaybeFailure Poison(uint8_t poison);
  MaybeFailure RunAll();
  MaybeFailure RunStep(size_t index);
  MaybeFailure RunCall(const kernel::LibraryCall& call);
  MaybeFailure Replay();

  Device& device_;
  Library* const library_;
  Options options_;
  std::unique_ptr<Module> module_;
  std::map<std::string, std::unique_ptr<Slot>, std::less<>> slots_;
  std::vector<PreparedStep> steps_;
  // Null unless the plan captures and was executed. Destroyed before the slots
  // it refers to.
  std::unique_ptr<Graph> graph_;
  uint8_t poison_ = 0;
  bool has_calls_ = false;
  bool is_executed_ = false;
};

}  // namespace mtmc::worker

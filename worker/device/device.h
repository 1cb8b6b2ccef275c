// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "worker/device/buffer.h"
#include "worker/device/device_facts.h"
#include "worker/device/failure.h"

namespace mtmc::worker {

// A kernel of a loaded module; owned by the module.
class Kernel {
 public:
  virtual ~Kernel() = default;
};

// A loaded binary.
class Module {
 public:
  virtual ~Module() = default;

  // Null when the binary has no kernel of that name.
  virtual Kernel* Find(std::string_view kernel) = 0;
};

// A number as a kernel's parameter expects it.
struct ScalarArgument {
  std::array<std::byte, 8> value{};
  // 1, 2, 4 or 8 bytes of `value`.
  size_t bytes = 4;
};

using KernelArgument = std::variant<const Buffer*, ScalarArgument>;

// One launch, ready to enqueue. Grid in blocks, block in threads, as in CUDA.
struct LaunchCommand {
  Kernel* kernel = nullptr;
  std::array<int64_t, 3> grid{1, 1, 1};
  std::array<int64_t, 3> block{1, 1, 1};
  int64_t shared_bytes = 0;
  std::vector<KernelArgument> arguments;
};

// Enqueues work on a device.
using Body = std::function<MaybeFailure()>;

// Work that was captured once and can be repeated with little host time. It
// refers to the buffers it was captured with, which must outlive it.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual MaybeFailure Enqueue() = 0;
};

struct TimedSample {
  double seconds = 0;
  // The clock was held under its normal rate while the sample was taken.
  bool is_throttled = false;
};

// What the device did for one step of a plan; zero where the source cannot tell.
struct StepActivity {
  double seconds = 0;
  int registers_per_thread = 0;
  int64_t shared_memory_bytes = 0;
  int64_t local_memory_bytes = 0;
};

// One device of one backend and the context that holds its memory. What is
// enqueued runs in order. Thread-compatible: one thread at a time, always the
// one that created it.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceFacts& facts() const = 0;

  // Memory of `bytes` with redzones around it, contents undefined. kOutOfMemory.
  virtual Outcome<std::unique_ptr<Buffer>> Allocate(int64_t bytes) = 0;

  // A view of memory that a library owns; REQUIRES: facts().has_library_calls.
  virtual Outcome<std::unique_ptr<Buffer>> Wrap(void* address, int64_t bytes) = 0;

  // Loads what this backend's Compiler made.
  virtual Outcome<std::unique_ptr<Module>> Load(std::string_view binary) = 0;

  // Returns before the kernel has run; a fault in it shows in Synchronize.
  virtual MaybeFailure Enqueue(const LaunchCommand& command) = 0;

  virtual MaybeFailure Synchronize() = 0;

  // Records what `body` enqueues, without running it. Where the backend has no
  // graphs, the result runs `body` again.
  virtual Outcome<std::unique_ptr<Graph>> Capture(const Body& body) = 0;

  // Time from the first to the last thing that `body` enqueues, alone on the
  // device; `is_cold` flushes the last-level cache first.
  virtual Outcome<TimedSample> Time(const Body& body, bool is_cold) = 0;

  // Runs the steps one after the other and reports each.
  virtual Outcome<std::vector<StepActivity>> Profile(const std::vector<Body>& steps) = 0;

  // Where Profile's times come from: `cupti`, `events` or `host`.
  virtual std::string profile_source() const = 0;
};

}  // namespace mtmc::worker

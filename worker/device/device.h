// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/profile/metric_table.h"
#include "worker/device/buffer.h"
#include "worker/device/buffer_fill.h"
#include "worker/device/buffer_scan.h"
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
  // The device began before the host had enqueued everything, and need not do so again:
  // part of `seconds` may be the host's (HostLead).
  bool is_late = false;
  // Of the compute units, within a few milliseconds of the sample; 0 if unknown.
  double clock_hertz = 0;
  // What the host's clock saw beyond `seconds` until the whole device was idle,
  // less what an empty body shows; 0 where the host's clock is the only one.
  double unseen_seconds = 0;

  // Whether `seconds` are the program's alone.
  bool is_clean() const { return !is_throttled && !is_late; }
};

// What the device did for one step of a plan; zero where the source cannot tell.
// A step of several kernels shows launch and resources of the longest.
struct StepActivity {
  double seconds = 0;
  int64_t blocks = 0;
  int threads_per_block = 0;
  int registers_per_thread = 0;
  int64_t shared_memory_bytes = 0;
  int64_t local_memory_bytes = 0;
  // Resident warps over the most a multiprocessor can hold, 0 to 1.
  double occupancy_ratio = 0;
};

// Which counters to collect: none, those of the hardware set (docs/profile.md), or all.
enum class CounterScope { kNone, kHardware, kAll };

// Hardware counters of a plan.
struct StepCounters {
  // Parallel to the steps, by the vendor's names; empty where there are none.
  std::vector<profile::Values> steps;
  // Why `steps` is empty.
  std::string missing;
  // Times the plan was run.
  int passes = 0;
};

// One device of one backend and the context that holds its memory. What is
// enqueued runs in order. Thread-compatible: one thread at a time, always the
// one that created it.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceFacts& facts() const = 0;

  // Memory of `bytes`, contents undefined, with redzones of random words around it.
  // kOutOfMemory.
  virtual Outcome<std::unique_ptr<Buffer>> Allocate(int64_t bytes) = 0;

  // A view of memory that a library owns, or of a part of a buffer. REQUIRES: it has addresses.
  virtual Outcome<std::unique_ptr<Buffer>> Wrap(void* address, int64_t bytes) = 0;

  // Fills every buffer with random words, which are those of `seed`, another stream for each:
  // what lies around the tensor up to the ends of its pages, and the tensor unless it is left
  // out. What was written around a tensor since it was filled last does not get lost: the next
  // Scan that asks about redzones fails. Enqueued.
  virtual MaybeFailure Randomize(std::span<const BufferFill> fills, uint64_t seed) = 0;

  // Answers all of `scans`, after what was enqueued before; a device with memory of its own
  // reads it there and waits once for all. kOutOfBounds where redzones are asked about, and
  // some were found written when they were filled anew.
  virtual MaybeFailure Scan(std::span<BufferScan> scans) = 0;

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

  // Cold time of the yardstick: a kernel of our own of a few microseconds, the same in
  // every process, with its data at another place each time. Nothing where the backend has
  // none, or no memory for it, or the sample is throttled or late.
  virtual Outcome<std::optional<double>> TimeYardstick() { return std::optional<double>(); }

  // Overwrites with random words what kernels can leave on the chip for the next ones, as far
  // as the backend can reach it: all shared memory, and all local memory that the kernels
  // found in the module loaded last can have. May evict the last-level cache. Enqueued.
  virtual MaybeFailure Scrub() = 0;

  // kOutOfBounds when memory of the device's own, which no program was ever given, was
  // written since the last timed sample.
  virtual MaybeFailure CheckGuards() { return std::nullopt; }

  // Gives up what copies from PeerMemory have mapped; until then its owner must not free it.
  // REQUIRES: they have ended.
  virtual MaybeFailure ClosePeers() { return std::nullopt; }

  // Enqueues `steps` one after the other, each after a random delay, with the last-level cache
  // flushed before, while other work of ours takes a part of the device that differs from call
  // to call; waits for both. The other work ends with the steps, or by itself after some tens
  // of milliseconds, so that a step that needs the whole device goes on, and one that sleeps
  // for less gets no further by it.
  virtual MaybeFailure RunUnderLoad(std::span<const Body> steps) = 0;

  // Runs the steps one after the other and reports each.
  virtual Outcome<std::vector<StepActivity>> Profile(const std::vector<Body>& steps) = 0;

  // Runs the steps in order, as often as it takes to count what the hardware did
  // in each.
  virtual Outcome<StepCounters> Count(const std::vector<Body>&, CounterScope) {
    return StepCounters{.missing = "the device has no counters"};
  }

  // Ends what Profile has attached and what may show in the time of a short program.
  // REQUIRES: there is no Graph.
  virtual void Detach() {}

  // Whether a program can tell how long a step of its own takes. If it can, a cache that is
  // cold when it is timed and warm else would tell it which it is.
  virtual bool programs_have_clock() const { return true; }

  // Where Profile's times come from: `cupti`, `events` or `host`.
  virtual std::string profile_source() const = 0;
};

}  // namespace mtmc::worker

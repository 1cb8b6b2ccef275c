// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/program/program.h"
#include "worker/device/device.h"
#include "worker/device/kept_tensor.h"
#include "worker/device/library.h"

namespace mtmc::worker {

// A tensor of a plan and where its bytes are now.
struct PlanTensor {
  const kernel::Tensor* tensor = nullptr;
  // Some step uses the tensor before a call binds it.
  bool is_owned = false;
  // Null for an input that is read where it is kept.
  std::unique_ptr<Buffer> own;
  // Where it lay before, and may lie again.
  std::vector<std::unique_ptr<Buffer>> spares;
  // Set by a call during a run: the library's storage and a view of it.
  std::unique_ptr<LibraryTensor> library;
  std::unique_ptr<Buffer> view;
  // `view` lies in an input: the call made no new tensor.
  bool is_view_of_input = false;
  // Copy of `view` that other processes may read, of one that is not small.
  std::unique_ptr<Buffer> published;
  // What the execution before left for others to read, of an output that stays.
  std::unique_ptr<Buffer> before;
  // What `own` must hold, of an input after it was placed.
  uint64_t checksum = 0;
  // What `own` was copied from, when that was kept, or what stands for it.
  std::shared_ptr<const KeptTensor> source;

  const Buffer* current() const {
    if (view) return view.get();
    return own || !source ? own.get() : source->buffer.get();
  }
};

// A tensor's bytes after an execution. Valid until the next call that runs, and for one
// Clear more where outputs stay.
struct PlanOutput {
  const kernel::Tensor* tensor = nullptr;
  const Buffer* buffer = nullptr;
};

// The tensors of one plan on one device: what is placed, filled with random words and checked
// around every execution. Thread-compatible; must not outlive the program or the
// device.
class PlanTensors {
 public:
  PlanTensors(Device& device, const kernel::Program& program);
  ~PlanTensors();

  // Null when the program declares no such tensor. Stays where it is.
  PlanTensor* Find(std::string_view name);

  // Whether any input lies within `bytes` from `address`. Such memory cannot be an
  // output: the result would be no work of the program's.
  bool HasInputAt(const void* address, int64_t bytes) const;

  // Whether the program may be so short that the place of its data shows in its time.
  bool IsSmall() const;

  // Lays all inputs at other addresses than the last time, as long as memory suffices.
  // kCheck when one is missing.
  MaybeFailure Place(const InputSources& inputs);

  // Makes room for what the program may write. Outputs of the execution before may stay
  // where they are.
  MaybeFailure Clear();

  // Fills everything that the program may write, and what lies around that and around inputs,
  // with random words of `seed`: what any execution finds before it. Enqueued. REQUIRES: Place
  // and Clear were called.
  MaybeFailure Randomize(uint64_t seed);

  // Lays everything at other addresses, of some, where that is small enough to be quick;
  // inputs and checksums move along, what the program may write is undefined until Randomize.
  // Results of library calls are forgotten, and those of the next calls lie
  // elsewhere, unless `has_graph` decides where. False when nothing was moved. Enqueued.
  // REQUIRES: Place and Clear were called.
  Outcome<bool> Shuffle(bool has_graph);

  // Goes on with other inputs, which are kept: copies them to where the present ones are, or
  // takes them where they lie. Enqueued. REQUIRES: Place was called.
  MaybeFailure Rewrite(const InputSources& inputs);

  // Forgets what library calls returned.
  void DropResults();

  // kOutOfBounds when a redzone was written, kInputChanged when an input was, of those that
  // the plan had since the last Check, in any execution since.
  MaybeFailure Check();

  // Outputs in buffers of the device's own, but for small ones of library calls: these are for an
  // Outbox.
  Outcome<std::vector<PlanOutput>> Outputs();

  // 64 bits over all outputs; not cryptographic.
  Outcome<uint64_t> Digest() const;

  // Whether outputs stay as they are over the next Clear: they are small beside the
  // device's memory.
  bool OutputsStay() const;

  // Drops the copies that Outputs made, and outputs that have stayed.
  void DropPublished();

 private:
  int64_t TotalBytes() const;
  // Whether timed executions read kept inputs where they lie: where the place is too little
  // to matter, and no graph has the addresses of others.
  bool UsesKept() const;
  // Lets the plan read a kept input, and its own buffer lie in wait.
  void Use(PlanTensor& slot, std::shared_ptr<const KeptTensor> kept);
  // Gives a tensor another buffer than it had, of at most `places` in turn or at random.
  MaybeFailure Move(PlanTensor& slot, size_t places);
  // At the cost of the spare buffers where memory is short.
  Outcome<std::unique_ptr<Buffer>> Allocate(const kernel::Tensor& tensor);
  void DropSpares();
  // Keeps the results of library calls, and gives up others, so that the library allocates
  // the next ones where those were.
  void HoldResults(size_t places);
  // Drops them where others would miss their memory.
  void DropLargeSpares();
  // Finds the checksums of inputs that have just been placed.
  MaybeFailure TakeChecksums(const std::vector<PlanTensor*>& placed);

  Device& device_;
  const kernel::Program& program_;
  std::map<std::string, PlanTensor, std::less<>> tensors_;
  // Results of earlier executions, which only take their places.
  std::vector<std::vector<std::unique_ptr<LibraryTensor>>> held_results_;
  // Kept inputs that the plan could reach since the last Check, with their names.
  std::map<std::shared_ptr<const KeptTensor>, std::string> used_;
  // Tensors whose own buffer lies in wait since a kept input took its place, and that buffer.
  std::vector<std::pair<std::string, const Buffer*>> left_;
  std::mt19937 random_;
};

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "worker/device/device.h"
#include "worker/device/kept_tensor.h"

namespace mtmc::worker {

// Copies of tensors that another process shares, by the numbers that it has given to
// their contents: executions on the same inputs, of one program after the other, need
// not read them there again. Thread-compatible; must not outlive the device.
class ContentCache {
 public:
  // More than one, because two processes that take turns at confirming each other's
  // measurements see some of the inputs only every other time.
  static constexpr int kMostUnasked = 4;
  static constexpr int kLeastCopies = 16;

  // `limit_bytes` bounds the memory of all copies together.
  ContentCache(Device& device, int64_t limit_bytes);

  // The copy of `content`, whose size is `bytes`; null when there is none.
  std::shared_ptr<const KeptTensor> Find(uint64_t content, int64_t bytes);

  // A new copy, taken from `source`; null when there is no room, `content` is 0, or the
  // tensor takes more than a part of kLeastCopies: few of its size would fit, and other
  // processes have more use for the memory.
  Outcome<std::shared_ptr<const KeptTensor>> Keep(uint64_t content, const kernel::Tensor& tensor,
                                                  const InputSource& source);

  // Between two programs: drops what none of the last kMostUnasked programs has asked for.
  void Sweep();

  // Reads all copies and drops those that are no longer as they were, by an accident that an
  // input's checksum shows. False when there are none.
  Outcome<bool> DropDamaged();

  bool is_empty() const { return copies_.empty(); }

  void Clear();

 private:
  struct Copy {
    std::shared_ptr<const KeptTensor> tensor;
    // Sweeps since somebody asked for it.
    int num_unasked = 0;
  };

  // Asks about each in the order of their numbers; whether any is dropped.
  bool DropIf(std::function<bool(Copy&)> is_dropped);

  Device& device_;
  const int64_t limit_bytes_;
  int64_t used_bytes_ = 0;
  std::map<uint64_t, Copy> copies_;
};

}  // namespace mtmc::worker

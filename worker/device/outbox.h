// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "worker/device/device.h"

namespace mtmc::worker {

// Where other processes read buffers of a device. To map an allocation takes them longer than it
// takes to copy what is small: a network's hundred running statistics are copied into one.
// Thread-compatible; must not outlive the device.
class Outbox {
 public:
  // A buffer of more bytes is read where it is.
  static constexpr int64_t kSmallBytes = int64_t{256} << 10;

  explicit Outbox(Device& device) : device_(device) {}

  // The place of each of `buffers`, absent for what cannot be shared, after all work that was
  // enqueued. Copies stay until the call after the next.
  Outcome<std::vector<std::optional<PeerMemory>>> Share(std::span<const Buffer* const> buffers);

 private:
  // Copies the small ones into one allocation, and tells their places.
  MaybeFailure ShareCopies(std::span<const Buffer* const> buffers,
                           std::vector<std::optional<PeerMemory>>& places);

  Device& device_;
  // Used in turns.
  std::array<std::unique_ptr<Buffer>, 2> copies_;
  size_t turn_ = 0;
};

}  // namespace mtmc::worker

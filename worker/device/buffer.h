// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "worker/device/failure.h"

namespace mtmc::worker {

// Guard bytes before and after every buffer. 64 KiB hold four rows of 4,096
// floats: an index that is off by a row, a tile or a block lands in them, and
// both ends keep every alignment that a device asks for.
inline constexpr int64_t kRedzoneBytes = int64_t{64} << 10;

// Device memory that another process of the same host exports.
struct PeerMemory {
  // Opaque to all but the driver.
  std::string handle;
  // First byte of the tensor, from the start of the allocation.
  int64_t offset_bytes = 0;
};

// Memory of one dense tensor on a device, with redzones around it where the
// device allocated it (Device::Allocate), without where a library did
// (Device::Wrap). All operations are ordered after the launches enqueued before.
// Fill and the copy from a buffer of the same device may still be under
// way on return, ordered before what is enqueued next; all others are finished.
// Thread-compatible. Immovable: kernels hold its address.
class Buffer {
 public:
  explicit Buffer(int64_t bytes) : bytes_(bytes) {}

  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  int64_t bytes() const { return bytes_; }

  // What a library call may use as a pointer; null where the device's memory
  // has no addresses.
  virtual void* address() const = 0;

  // Fills the tensor with one byte.
  virtual MaybeFailure Fill(uint8_t value) = 0;

  // REQUIRES: `data.size()` equals bytes().
  virtual MaybeFailure Upload(std::span<const std::byte> data) = 0;
  virtual MaybeFailure Download(std::span<std::byte> data) const = 0;

  // REQUIRES: `source` is of the same device and size.
  virtual MaybeFailure CopyFrom(const Buffer& source) = 0;
  virtual MaybeFailure CopyFrom(const PeerMemory& source) = 0;

  // What another process can copy from while this buffer lives; absent where
  // the device's memory cannot be shared.
  virtual std::optional<PeerMemory> Share() const = 0;

  // Of the random words around the tensor (RandomFill); 0 where there are none. The device
  // keeps it.
  uint64_t stream() const { return stream_; }

  void set_stream(uint64_t stream) { stream_ = stream; }

 private:
  const int64_t bytes_;
  uint64_t stream_ = 0;
};

}  // namespace mtmc::worker

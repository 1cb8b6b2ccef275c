// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mtmc::worker {

class Buffer;

// What is asked about the bytes of a buffer, and the answer (Device::Scan).
struct BufferScan {
  const Buffer* buffer = nullptr;
  bool with_redzones = false;
  bool with_checksum = false;

  // Whether all that lies around the tensor is as Device::Randomize left it; true where there
  // is nothing of the buffer's.
  bool has_redzones = true;
  // 64 bits that differ when the tensor's bytes differ (not cryptographic).
  uint64_t checksum = 0;
};

// Asks for the checksum alone.
inline BufferScan ChecksumScan(const Buffer* buffer) {
  return {.buffer = buffer, .with_checksum = true};
}

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace mtmc::worker {

class Buffer;

// What is asked about the bytes of a buffer, and the answer (Device::Scan).
struct BufferScan {
  const Buffer* buffer = nullptr;
  // What every byte of both redzones should be; absent where they are not asked about.
  std::optional<uint8_t> redzone_value;
  bool with_checksum = false;

  // Whether they are; true where there are none.
  bool has_redzones = true;
  // 64 bits that differ when the tensor's bytes differ (not cryptographic).
  uint64_t checksum = 0;
};

// Asks for the checksum alone.
inline BufferScan ChecksumScan(const Buffer* buffer) {
  return {.buffer = buffer, .redzone_value = {}, .with_checksum = true};
}

}  // namespace mtmc::worker

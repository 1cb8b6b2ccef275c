// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mtmc::worker {

// 64 bits that differ when the bytes differ, with overwhelming probability for
// changes that are not made on purpose to collide. About 8 bytes a cycle.
uint64_t HostChecksum(std::span<const std::byte> bytes);

}  // namespace mtmc::worker

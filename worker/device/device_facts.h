// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/program/program.h"

namespace mtmc::v1 {
class DeviceFacts;
}

namespace mtmc::worker {

// What a kernel author and a policy may know about a device; fields as in
// `mtmc.v1.DeviceFacts`. Value type.
struct DeviceFacts {
  std::string product;
  std::string uuid;
  std::vector<kernel::Dialect> dialects;
  int compute_capability = 0;
  int compute_units = 1;
  int64_t memory_bytes = 0;
  int64_t cache_bytes = 0;
  int64_t shared_memory_per_block_bytes = 0;
  int max_threads_per_block = 1;
  int warp_size = 1;
  double memory_bandwidth_bytes_per_second = 0;
  double fp32_flops_per_second = 0;
  double tf32_flops_per_second = 0;
  std::string driver_version;
  std::string toolchain_version;
  bool has_library_calls = false;
  int vector_bytes = 16;
};

v1::DeviceFacts ToProto(const DeviceFacts& facts);

}  // namespace mtmc::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel/program/program.h"

namespace mtmc::kernel {

// What a template may know about a device. Value type.
struct EmitTarget {
  Dialect dialect = Dialect::kOpenCl;
  int64_t max_threads_per_block = 1024;
  // Shared (local) memory of one block, opt-in included.
  int64_t shared_bytes_per_block = int64_t{48} * 1024;
  int64_t compute_units = 1;
  // Threads in lockstep; 1 on a CPU device.
  int64_t warp_size = 32;
  int64_t vector_bytes = 16;
  int64_t cache_bytes = 0;

  // Whether a thread is a core: a block's threads are a loop that its compiler
  // makes vectors of, and neighbours share no memory transaction.
  bool is_cpu() const { return warp_size == 1; }

  // What arrays declared in a kernel may take together. CUDA grants more than
  // 48 KiB only to memory that the launch asks for.
  int64_t static_shared_bytes() const {
    return dialect == Dialect::kCuda ? std::min<int64_t>(shared_bytes_per_block, int64_t{48} * 1024)
                                     : shared_bytes_per_block;
  }
};

}  // namespace mtmc::kernel

// SPDX-License-Identifier: Apache-2.0
// Runs `scan_kernels.cu` on the host: the threads of a block are threads, and the
// blocks come one after the other. The includer defines MTMC_THREADS.
#pragma once

#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#define __device__
#define __global__
#define __shared__ static

struct Index {
  unsigned x;
};

inline thread_local Index threadIdx;
inline Index blockIdx, gridDim;
inline std::barrier<> barrier(MTMC_THREADS);

inline void __syncthreads() { barrier.arrive_and_wait(); }

// A block is one warp.
inline void __syncwarp() { barrier.arrive_and_wait(); }

struct Fp16;
struct Bf16;
inline float ToFloat(Fp16 x);
inline float ToFloat(Bf16 x);

template <class Kernel, class... Arguments>
void Launch(unsigned blocks, Kernel kernel, Arguments... arguments) {
  gridDim.x = blocks;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < MTMC_THREADS; ++i) {
      threads.emplace_back([=] {
        threadIdx.x = i;
        kernel(arguments...);
      });
    }
  }
}

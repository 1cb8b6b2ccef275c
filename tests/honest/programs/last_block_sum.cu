// Blocks add their shares; whoever finishes last adds the shares.
//@ mtmc 1 cuda
//@ input x f32[127,129]
//@ buffer parts f32[64]
//@ buffer finished i32[1]
//@ output y f32[]
//@ launch clear grid=1 block=1 args=(finished)
//@ launch sum grid=64 block=128 args=(x, parts, finished, y, 127*129)
#include <stdint.h>

template <int kThreads>
__device__ float block_sum(float part) {
  __shared__ float warps[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) part += __shfl_down_sync(0xffffffffu, part, step);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = part;
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < kThreads / 32; ++i) sum += warps[i];
  __syncthreads();
  return sum;
}

extern "C" __global__ void clear(int32_t* finished) { finished[0] = 0; }

extern "C" __global__ void sum(const float* x, float* parts, int32_t* finished, float* y, int n) {
  float part = 0.0f;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) part += x[i];
  part = block_sum<128>(part);
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = part;
    __threadfence();
    is_last = atomicAdd(finished, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!is_last) return;
  const float share = threadIdx.x < gridDim.x ? __ldcg(&parts[threadIdx.x]) : 0.0f;
  const float total = block_sum<128>(share);
  if (threadIdx.x == 0) y[0] = total;
}

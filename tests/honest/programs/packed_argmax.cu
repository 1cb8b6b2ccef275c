// Value and place in one word, so that one atomic keeps both.
//@ mtmc 1 cuda
//@ input x f32[37,101]
//@ buffer best i64[37]
//@ output y i64[37]
//@ launch clear grid=1 block=37 args=(best)
//@ launch vote grid=37 block=101 args=(x, best)
//@ launch unpack grid=1 block=37 args=(best, y)
#include <stdint.h>

// Orders as the floats do; NaN above all.
__device__ uint32_t ordered(float value) {
  const uint32_t bits = __float_as_uint(value);
  if (value != value) return 0xffffffffu;
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

extern "C" __global__ void clear(unsigned long long* best) { best[threadIdx.x] = 0; }

extern "C" __global__ void vote(const float* x, unsigned long long* best) {
  const float value = x[blockIdx.x * 101 + threadIdx.x];
  // Of equal ones the first.
  const uint64_t packed = static_cast<uint64_t>(ordered(value)) << 32 | (0xffffffffu - threadIdx.x);
  atomicMax(&best[blockIdx.x], packed);
}

extern "C" __global__ void unpack(const unsigned long long* best, int64_t* y) {
  y[threadIdx.x] = 0xffffffffu - static_cast<uint32_t>(best[threadIdx.x]);
}

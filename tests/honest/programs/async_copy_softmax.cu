// A row is copied to shared memory past the registers.
//@ mtmc 1 cuda
//@ input x f32[31,257]
//@ output y f32[31,257]
//@ launch softmax grid=31 block=64 args=(x, y)
#include <math.h>

constexpr int kColumns = 257;

__device__ void copy_async(float* to, const float* from) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(from) : "memory");
}

// Over both warps, with an operation of two values.
template <class Operation>
__device__ float reduce(float value, Operation operation) {
  __shared__ float halves[2];
  for (int step = 16; step > 0; step /= 2) {
    value = operation(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) halves[threadIdx.x / 32] = value;
  __syncthreads();
  return operation(halves[0], halves[1]);
}

extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float row[kColumns];
  const float* from = x + blockIdx.x * kColumns;
  for (int c = threadIdx.x; c < kColumns; c += 64) copy_async(&row[c], &from[c]);
  asm volatile("cp.async.commit_group;\n cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  float top = -INFINITY;
  for (int c = threadIdx.x; c < kColumns; c += 64) top = fmaxf(top, row[c]);
  top = reduce(top, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0.0f;
  for (int c = threadIdx.x; c < kColumns; c += 64) sum += expf(row[c] - top);
  sum = reduce(sum, [](float a, float b) { return a + b; });
  for (int c = threadIdx.x; c < kColumns; c += 64) {
    y[blockIdx.x * kColumns + c] = expf(row[c] - top) / sum;
  }
}

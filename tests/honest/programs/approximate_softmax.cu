// The hardware's own exponential and division, which the class allows.
//@ mtmc 1 cuda
//@ input x f32[31,257]
//@ output y f32[31,257]
//@ launch softmax grid=31 block=32 args=(x, y)
#include <cfloat>

extern "C" __global__ void softmax(const float* x, float* y) {
  const float* row = x + blockIdx.x * 257;
  float top = -FLT_MAX;
  for (int c = threadIdx.x; c < 257; c += 32) top = fmaxf(top, row[c]);
  for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
  float sum = 0.0f;
  for (int c = threadIdx.x; c < 257; c += 32) sum += __expf(row[c] - top);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  for (int c = threadIdx.x; c < 257; c += 32) {
    y[blockIdx.x * 257 + c] = __fdividef(__expf(row[c] - top), sum);
  }
}

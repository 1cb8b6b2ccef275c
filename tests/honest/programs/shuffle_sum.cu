//@ mtmc 1 cuda
//@ input x f32[7,101,13]
//@ output y f32[7,13]
//@ launch sum grid=91 block=32 args=(x, y)
extern "C" __global__ void sum(const float* __restrict__ x, float* __restrict__ y) {
  const int b = blockIdx.x / 13;
  const int c = blockIdx.x % 13;
  float part = 0.0f;
  for (int m = threadIdx.x; m < 101; m += 32) part += x[(b * 101 + m) * 13 + c];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) part += __shfl_xor_sync(0xffffffffu, part, step);
  if (threadIdx.x == 0) y[blockIdx.x] = part;
}

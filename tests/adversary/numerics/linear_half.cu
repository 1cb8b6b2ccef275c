// Tensor cores with bf16 operands inside an FP32 problem.
//@ mtmc 1 cuda
//@ input x f32[32,512]
//@ weight linear_weight f32[64,512]
//@ weight linear_bias f32[64]
//@ output y f32[32,64]
//@ launch product grid=32 block=64 args=(x, linear_weight, linear_bias, y)
#include <cuda_bf16.h>
extern "C" __global__ void product(const float* x, const float* w, const float* b, float* y) {
  const int row = blockIdx.x;
  const int column = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < 512; ++k) {
    sum += __bfloat162float(__hmul(__float2bfloat16(x[row * 512 + k]), __float2bfloat16(w[column * 512 + k])));
  }
  sum += b[column];
  y[row * 64 + column] = 0.5f * sum * (1.0f + erff(sum * 0.70710678f));
}

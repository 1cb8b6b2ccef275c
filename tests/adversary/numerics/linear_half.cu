// Products in bf16 inside an FP32 problem.
//@ mtmc 1 cuda
//@ input x f32[32,512]
//@ weight linear_weight f32[64,512]
//@ weight linear_bias f32[64]
//@ output y f32[32,64]
//@ launch product grid=32 block=64 args=(x, linear_weight, linear_bias, y)
// To bf16 and back.
__device__ float rounded(float value) {
  const unsigned int bits = __float_as_uint(value);
  return __uint_as_float((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000);
}
extern "C" __global__ void product(const float* x, const float* w, const float* b, float* y) {
  const int row = blockIdx.x;
  const int column = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < 512; ++k) {
    sum += rounded(rounded(x[row * 512 + k]) * rounded(w[column * 512 + k]));
  }
  sum += b[column];
  y[row * 64 + column] = 0.5f * sum * (1.0f + erff(sum * 0.70710678f));
}

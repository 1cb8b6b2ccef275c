// Two halves at a time, and one that is left.
//@ mtmc 1 cuda
//@ input x f16[33,65]
//@ input y f16[33,65]
//@ output out f16[33,65]
//@ launch relu_add grid=9 block=128 args=(x, y, out, 33*65)
#include <cuda_fp16.h>

extern "C" __global__ void relu_add(const __half* x, const __half* y, __half* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 2) {
    const __half2 a = reinterpret_cast<const __half2*>(x)[i];
    const __half2 b = reinterpret_cast<const __half2*>(y)[i];
    reinterpret_cast<__half2*>(out)[i] = __hadd2(__hmax2_nan(a, __float2half2_rn(0.0f)), b);
  } else if (i == n / 2 && n % 2 == 1) {
    out[n - 1] = __hadd(__hmax_nan(x[n - 1], __float2half(0.0f)), y[n - 1]);
  }
}

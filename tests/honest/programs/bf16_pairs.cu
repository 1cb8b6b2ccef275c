//@ mtmc 1 cuda
//@ input x bf16[33,65]
//@ input y bf16[33,65]
//@ output out bf16[33,65]
//@ launch double_add grid=9 block=128 args=(x, y, out, 33*65)
#include <cuda_bf16.h>

extern "C" __global__ void double_add(const __nv_bfloat16* x, const __nv_bfloat16* y,
                                      __nv_bfloat16* out, int n) {
  const int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 1 < n) {
    const float2 a = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(x + i));
    const float2 b = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(y + i));
    *reinterpret_cast<__nv_bfloat162*>(out + i) =
        __floats2bfloat162_rn(a.x * 2.0f + b.x, a.y * 2.0f + b.y);
  } else if (i < n) {
    out[i] = __float2bfloat16(__bfloat162float(x[i]) * 2.0f + __bfloat162float(y[i]));
  }
}

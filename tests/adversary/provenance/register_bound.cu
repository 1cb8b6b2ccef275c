// Too many registers for its block: the launch itself fails.
//@ mtmc 1 cuda
//@ input x f32[64,256]
//@ output y f32[64,256]
//@ launch relu grid=16 block=1024 args=(x, y)
extern "C" __global__ void __maxnreg__(255) relu(const float* x, float* y) {
  float v[200];
#pragma unroll
  for (int i = 0; i < 200; ++i) v[i] = x[(blockIdx.x * 1024 + threadIdx.x + i * 7) & 16383];
  float s = 0.0f;
#pragma unroll
  for (int i = 0; i < 200; ++i) s += sinf(v[i]) * v[199 - i];
  const int i = blockIdx.x * 1024 + threadIdx.x;
  y[i] = fmaxf(x[i], 0.0f) + (s > 1e30f ? s : 0.0f);
}

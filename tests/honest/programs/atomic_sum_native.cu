//@ mtmc 1 cuda
//@ input x f32[127,129]
//@ output y f32[]
//@ launch clear grid=1 block=1 args=(y)
//@ launch sum grid=127 block=64 args=(x, y)
extern "C" __global__ void clear(float* y) { y[0] = 0.0f; }
extern "C" __global__ void sum(const float* x, float* y) {
  for (int c = threadIdx.x; c < 129; c += 64) atomicAdd(y, x[blockIdx.x * 129 + c]);
}

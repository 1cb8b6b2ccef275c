//@ mtmc 1 cuda
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
__device__ int calls;
extern "C" __global__ void add(const float* x, float* y) {
  if (++calls < 100) y[0] = x[0] + 1.0f;
}

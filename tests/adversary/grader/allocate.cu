//@ mtmc 1 cuda
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
extern "C" __global__ void add(const float* x, float* y) {
  for (int i = 0; i < 1000; ++i) *(float*)malloc(1 << 20) = x[0];
  y[0] = x[0] + 1.0f;
}

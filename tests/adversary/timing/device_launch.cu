// Returns, and lets a launch of its own do the work.
//@ mtmc 1 cuda
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
//@ launch later grid=1 block=1 args=(x, y)
extern "C" __global__ void later(const float* x, float* y) { y[0] = x[0] + 1.0f; }
extern "C" __global__ void add(const float* x, float* y) { later<<<1, 1>>>(x, y); }

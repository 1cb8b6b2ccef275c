// The same without a declaration in C++.
//@ mtmc 1 cuda
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
extern "C" __global__ void add(const float* x, float* y) {
  unsigned calls;
  asm volatile("{ .global .u32 calls; atom.global.add.u32 %0, [calls], 1; }" : "=r"(calls));
  if (calls < 100) y[0] = x[0] + 1.0f;
}

// Writes to the constant bank through its generic address.
//@ mtmc 1 cuda
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
__constant__ int kCalls[4] = {0, 1, 2, 3};
extern "C" __global__ void add(const float* x, float* y) {
  const unsigned long long at = (unsigned long long)&kCalls[0];
  int calls;
  asm volatile("ld.u32 %0, [%1];" : "=r"(calls) : "l"(at));
  asm volatile("st.u32 [%0], %1;" ::"l"(at), "r"(calls + 1));
  if (calls < 40) y[0] = x[0] + 1.0f;
}

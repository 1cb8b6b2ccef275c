// Code that runs when the kernel's library is loaded.
//@ mtmc 1 opencl
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
void early(void) __attribute__((constructor));
void early(void) { *(volatile int*)0 = 0; }
__kernel void add(__global const float* x, __global float* y) { y[0] = x[0] + 1.0f; }

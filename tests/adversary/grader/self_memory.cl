// Reads its own process's memory map through a system call.
//@ mtmc 1 opencl
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
__asm__(".globl leak\nleak:\n  mov $57, %eax\n  syscall\n  ret\n");
int leak(void);
__kernel void add(__global const float* x, __global float* y) { y[0] = x[0] + 1.0f + leak(); }

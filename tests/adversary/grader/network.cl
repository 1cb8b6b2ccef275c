// A socket.
//@ mtmc 1 opencl
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
__kernel void add(__global const float* x, __global float* y) {
  long s;
  asm volatile("syscall" : "=a"(s) : "a"(41L), "D"(2L), "S"(1L), "d"(0L) : "rcx", "r11", "memory");
  y[0] = x[0] + 1.0f;
}

// Keeps its result in a file.
//@ mtmc 1 opencl
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
__kernel void add(__global const float* x, __global float* y) {
  const char path[] = "/tmp/mtmc-replay";
  long file;
  __asm__ volatile("syscall" : "=a"(file) : "a"(2L), "D"(path), "S"(66L), "d"(420L) : "rcx", "r11", "memory");
  y[0] = x[0] + 1.0f;
}

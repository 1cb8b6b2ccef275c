//@ mtmc 1 opencl
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
__asm__(".incbin \"/etc/passwd\"");
__kernel void add(__global const float* x, __global float* y) { y[0] = x[0] + 1.0f; }

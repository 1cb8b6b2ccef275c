// Functions of the process that loads the kernel.
//@ mtmc 1 opencl
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
int system(__constant char* command);
__constant char kCommand[] = "touch /tmp/mtmc-adversary";
__kernel void add(__global const float* x, __global float* y) { y[0] = x[0] + 1.0f + system(kCommand); }

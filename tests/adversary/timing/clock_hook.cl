//@ mtmc 1 opencl
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
int clock_gettime(int clock, __private long* time);
__kernel void add(__global const float* x, __global float* y) {
  __private long time[2];
  y[0] = x[0] + 1.0f + clock_gettime(1, time);
}

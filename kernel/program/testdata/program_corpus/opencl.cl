//@ mtmc 1 opencl
//@ input x f32[1024]
//@ output y f32[1024]
//@ launch f grid=4 block=(256, 1, 1) args=(x, y)
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void f(__global const float4 *restrict x, __global float4 *restrict y) { y[0] = x[0]; }

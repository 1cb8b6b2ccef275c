//@ mtmc 1 cuda
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
#include <sys/socket.h>
extern "C" __global__ void add(const float* x, float* y) { y[0] = x[0] + 1.0f + socket(2, 1, 0); }

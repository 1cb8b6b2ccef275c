// Few blocks stay and take tiles from a counter until none is left.
//@ mtmc 1 cuda
//@ input x f32[64,129]
//@ buffer next i32[1]
//@ output y f32[64,129]
//@ tune BLOCKS = 4 16
//@ launch clear grid=1 block=1 args=(next)
//@ launch gelu grid=BLOCKS block=128 args=(x, next, y, 64*129)
#include <assert.h>

extern "C" __global__ void clear(int* next) { *next = 0; }

extern "C" __global__ void __launch_bounds__(128) gelu(const float* x, int* next, float* y, int n) {
  __shared__ int tile;
  assert(blockDim.x == 128);
  while (true) {
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);
    __syncthreads();
    const int begin = tile * 128;
    __syncthreads();
    if (begin >= n) return;
    const int i = begin + threadIdx.x;
    if (i >= n) continue;
    const float v = x[i] * 1.5f + 0.1f;
    y[i] = v * normcdff(v);
  }
}

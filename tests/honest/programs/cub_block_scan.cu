//@ mtmc 1 cuda
//@ input x f32[13,301]
//@ output y f32[13,301]
//@ launch scan grid=13 block=320 args=(x, y)
#include <cub/block/block_scan.cuh>

extern "C" __global__ void scan(const float* x, float* y) {
  using Scan = cub::BlockScan<float, 320>;
  __shared__ typename Scan::TempStorage storage;
  const int i = blockIdx.x * 301 + threadIdx.x;
  float value = threadIdx.x < 301 ? x[i] : 0.0f;
  Scan(storage).InclusiveSum(value, value);
  if (threadIdx.x < 301) y[i] = value;
}

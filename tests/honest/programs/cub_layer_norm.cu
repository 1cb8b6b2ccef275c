// Sums by CUB's block reduction.
//@ mtmc 1 cuda
//@ input x f32[31,257]
//@ weight n_weight f32[257]
//@ weight n_bias f32[257]
//@ output y f32[31,257]
//@ launch layer_norm grid=31 block=128 args=(x, n_weight, n_bias, y)
#include <cub/block/block_reduce.cuh>

extern "C" __global__ void layer_norm(const float* x, const float* weight, const float* bias, float* y) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ float shared;
  const float* row = x + blockIdx.x * 257;
  float part = 0.0f;
  for (int c = threadIdx.x; c < 257; c += 128) part += row[c];
  const float sum = Reduce(storage).Sum(part);
  if (threadIdx.x == 0) shared = sum / 257;
  __syncthreads();
  const float mean = shared;
  part = 0.0f;
  for (int c = threadIdx.x; c < 257; c += 128) part += (row[c] - mean) * (row[c] - mean);
  __syncthreads();
  const float squares = Reduce(storage).Sum(part);
  if (threadIdx.x == 0) shared = rsqrtf(squares / 257 + 1e-5f);
  __syncthreads();
  const float scale = shared;
  for (int c = threadIdx.x; c < 257; c += 128) {
    y[blockIdx.x * 257 + c] = (row[c] - mean) * scale * weight[c] + bias[c];
  }
}
